"""The one door to every model: four dialects in front, and behind them a script, a tape or a provider."""
