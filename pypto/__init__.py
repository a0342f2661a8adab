"""PyPTO tile kernels for Ascend NPUs, run and timed without a card."""

__version__ = "0.1.0"
