"""Networks as the tensor engine calls them: checked, compiled, timed; and evaluators of other engines on the device."""
