"""Networks for the tensor engine: checked, compiled and timed; and conversion of the other engines' evaluators."""
