"""Post-training quantization to 8 bits, by NNCF.

Activations get the whole range that they take on positions of the game: cutting off the rarest, as is the default,
makes the worst position worse (value errors of 0.008 instead of 0.004 in a trained network). Weights get a range per
output channel. Bias correction is left out: it made no difference to the answers, and takes as long as all the rest.

Older x86 CPUs, without VNNI, add two products of 8-bit numbers in 16 bits, and large ones overflow. There weights get
7 bits (NNCF's "overflow fix"), with which the sum always fits.
"""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Sequence
from contextlib import redirect_stdout
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.errors import EvaluatorError
from windrow.evaluators.backends.catalog import cpu_overflows
from windrow.evaluators.backends.discreet import import_discreetly


def quantize(model: Any, batches: Sequence[Sequence[npt.NDArray[np.float32]]]) -> Any:
    """A quantized copy of an OpenVINO model, calibrated on batches of inputs."""
    try:
        with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            nncf = import_discreetly("nncf")
            ranges = import_discreetly("nncf.quantization.range_estimator")
            overflow = import_discreetly("nncf.quantization.advanced_parameters").OverflowFix
            nncf.set_log_level(logging.ERROR)
            return nncf.quantize(
                model,
                nncf.Dataset([list(batch) if len(batch) > 1 else batch[0] for batch in batches]),
                subset_size=len(batches),
                advanced_parameters=nncf.AdvancedQuantizationParameters(
                    disable_bias_correction=True,
                    overflow_fix=overflow.ENABLE if cpu_overflows() else None,
                    activations_range_estimator_params=ranges.RangeEstimatorParametersSet.MINMAX,
                ),
            )
    except Exception as error:
        raise EvaluatorError(f"the network cannot be quantized: {error}") from error
