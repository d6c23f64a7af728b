"""Log-linear, logistic and linear models of randomized tables: fitted through the known channel."""
