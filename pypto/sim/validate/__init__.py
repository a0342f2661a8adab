"""The clock against published figures: ``python -m pypto.sim.validate``."""
