"""Every tuned number of the search for a ramp or a mixture of ramps, with its unit and its reason.

None of them is needed for a guarantee: what is stated of a law is computed from the law as drawn.
Figures are of the requests in docs/decisions/0044-one-ramp-or-one-linear-program.md.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """How finely, how long and how far is searched.

    Sums (`evaluate`):
        states: of the grid from cost 0 to a ramp's bottom. Heights differ by 1e-4 nats between 700
            states and all patterns; what is drawn is solved for again on the grid of the law.
        states_for_pairs: the same for attenuations of pairs, of which 700 tell thousandths.
        states_for_prices: the same for what ramps are worth, which only says where to look.
        most_on_a_grid: attributes up to which a grid is used. Of more the cost is nearly always all
            but normal, and a few dozen frequencies of the cost itself hold all of its law.
        frequencies: that are tried for that, in turn.
        damped: nats by which what lies beyond a period is damped: e^{-34} is rounding in a double.
        negligible: size of a frequency's term, relative to the first, at which no more are needed.
        steepest_tilt: in nats per nat of the ramp: under a tilt as steep as the ramp its lower part
            is lost to rounding.

    Newton's method (`newton`):
        norm: order of the norm that stands for the largest share of a cap: above it by ln k/norm.
        above_bottom: ln c by which a slope rests above the bottom, where its size does not matter.
        rounding: part of a cap that is left to rounding.
        vote: slopes of so many E are a vote but for 1e-3 of ε; where nothing is capped they are
            fixed there, since nothing else fixes them.
        newton_steps: at most. Of 130 ramps that settled half took 4 steps, and none more than 17.
        stalled: steps in a row that may pass without the miss falling by a third.
        longest_move, longest_rise: of ln c, and of E in nats, in a step: further off the equations
            are not linear.

    The best ramp (`search`):
        gain: part of E below which moving the top is not worth a step.
        tops: that are tried at most.
        looser: how many times looser caps a ramp is looked for, and followed from, where no start
            settles. Without them one level of 20 nats beside 23 others costs 47.7 nats, not 28.7.
        stride, shortest: longest and shortest step in ln(share of the caps) on the way.
        raised: times the top that it is moved up by where no shorter step settles: the tighter the
            caps, the higher is the best top. And for a floor on pairs.
        raises: how often on the way.
        halved: how often the step to the first top that keeps a floor is halved: to a hundredth.
        furthest: how far E, in nats, and ln c are extrapolated in a step of the top.

    Mixtures (`mixture`):
        factors: by which a neighbour of a ramp differs from it.
        starts: where the steepest ramps start to fall, in parts of the average cost of changes.
        below_record: nats that a ramp's bottom may lie below the record's: e^{-25} does not count.
        hardly: a ramp with slopes of so much of the levels stands for the uniform law.
        part_of_cap, most_of_cap: what is left of a cap to rounding, as a part of it and at most in
            nats: a table's largest integer takes up what all others lose.
        broken: by how much a floor is broken when its row is added to the program.
        dependent: rows of ramps that each meet the levels differ by less, and say nothing.
        rounds: of column generation. Adult's fifteen columns at a total of 1 end 0.4, 0.3, 0.1 and
            0 % above the last ε after 16, 24, 32 and 64 rounds; 24 attributes under a floor of 0.9
            0.4, 0.2, 0.1 and 0 %.
        patience, least_gain: it ends where so many rounds have gained less than this part of ε.
        tried, steps: ramps in use from which a round looks for others, and steps from each. Six and
            eight end 0.05 % nearer and take a fifth longer.
        worth: what a ramp must gain, as a part of e^{-ε}, for what it takes up.
        newest: share of the newest multipliers in those that are used, as they swing.
        solved: times that the program is solved once what it uses is evaluated as drawn.

    One law (`one_law`):
        most_summed: orbits times groups up to which all orbits are summed over in a search: twelve
            different attributes, or 50,000 alike; of more a grid is as good, and quicker.
        most_mixed: attributes up to which ramps are mixed. 40 under a floor of 0.95 would cost 2 to
            5 % less, and take 2.4 s instead of 0.2.
        exactly, on_a_grid: how near a ramp meets its levels, and how near it may come to a halt, in
            nats or as a part of a level below one.
        grid_margin: how far a grid may be off in a pair's ratio.
        apart: times the top between ramps that are mixed. With 1.2 mixtures are 0.1 % better, in
            1.3 times the time.
        tries, higher: ramps that are drawn, each with its top so many times as high, until one
            passes its checks: for room above the floor, and because where two slopes reach their
            caps at once steps may not settle.

    Laws as drawn (`quantize`):
        beyond_bottom: a slope above this many times the bottom does what one of this size does.
        most_below: units of the grid up to the bottom: where changes are rare the deviation of
            their cost would ask for millions.
        same: move of ln c up to which derivatives are used again.
        units_of_part: of the grid up to the bottom of a ramp that is mixed.
        left_out: share below which a ramp is left out of a mixture: below rounding in every sum.
    """

    states: int = 700
    states_for_pairs: int = 2800
    states_for_prices: int = 200
    most_on_a_grid: int = 30
    frequencies: tuple[int, ...] = (64, 128, 320)
    damped: float = 34.0
    negligible: float = 1e-13
    steepest_tilt: float = 0.95
    norm: float = 20_000.0
    above_bottom: float = 0.003
    rounding: float = 1e-10
    vote: float = 1.2
    newton_steps: int = 24
    stalled: int = 5
    longest_move: float = 0.8
    longest_rise: float = 1.0
    gain: float = 1e-5
    tops: int = 14
    looser: tuple[float, ...] = (1.3, 1.8, 3.0)
    stride: float = 0.12
    shortest: float = 0.02
    raised: float = 1.15
    raises: int = 8
    halved: int = 4
    furthest: float = 0.3
    factors: tuple[float, ...] = (0.8, 1.25)
    starts: tuple[float, ...] = (0.0, 0.25, 0.5, 0.75, 1.0)
    below_record: float = 25.0
    hardly: float = 1e-7
    part_of_cap: float = 1e-3
    most_of_cap: float = 1e-7
    broken: float = 1e-10
    dependent: float = 1e-6
    rounds: int = 24
    patience: int = 6
    least_gain: float = 3e-4
    tried: int = 5
    steps: int = 6
    worth: float = 1e-4
    newest: float = 0.5
    solved: int = 8
    most_summed: int = 50_000
    most_mixed: int = 30
    exactly: tuple[float, float] = (1e-12, 1e-11)
    on_a_grid: tuple[float, float] = (1e-7, 1e-5)
    grid_margin: float = 1e-3
    apart: float = 1.4
    tries: int = 4
    higher: float = 1.02
    beyond_bottom: float = 1.003
    most_below: float = 60_000.0
    same: float = 0.02
    units_of_part: int = 1000
    left_out: float = 1e-25


SETTINGS = Settings()
