"""Passes: functions from program to program, one file each (docs/compiler.md)."""
