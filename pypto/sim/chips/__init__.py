"""Chip descriptions: ``chip(name)`` and the dataclasses behind it."""

from .description import Chip, Constant, ConstantRow, Space
from .skus import SKUS, chip

__all__ = ["SKUS", "Chip", "Constant", "ConstantRow", "Space", "chip"]
