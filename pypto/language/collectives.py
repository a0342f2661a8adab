"""Bulk transfers and collectives, written in the language."""

from __future__ import annotations
