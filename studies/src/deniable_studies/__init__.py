"""Tables and figures of the papers, made again: a folder for each paper, and one beyond them."""
