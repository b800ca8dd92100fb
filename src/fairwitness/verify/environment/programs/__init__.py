"""Programs that run inside an environment, on its interpreter: standard library only, Python 3.8 or newer."""
