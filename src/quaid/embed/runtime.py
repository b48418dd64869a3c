"""The runtime of ONNX models, silenced before it is loaded.

Some builds of onnxruntime report every session to their maker and keep what they could not send under the user's
home. Nothing that this memory does goes anywhere: whoever needs the runtime takes it from here.
"""

import os
from typing import Any


def onnxruntime() -> Any:
    """The module, loaded with its reports turned off."""
    # Read when the library is loaded: its own switch comes too late.
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    import onnxruntime as ort  # type: ignore[import-untyped]

    ort.disable_telemetry_events()
    return ort
