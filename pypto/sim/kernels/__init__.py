"""Tile kernels: what every tile instruction does to values. See :mod:`pypto.sim.kernels.catalogue`."""
