"""The only way from an agent to a model: four API dialects in front, a provider or a script behind them."""
