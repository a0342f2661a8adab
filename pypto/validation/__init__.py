"""Published workloads as programs of the language, timed and compared: ``python -m pypto.sim.validate``."""
