"""The sink: writes rows of a DataFrame to topics, encoded column by column, at least once or exactly once."""
