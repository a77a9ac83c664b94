"""Resources that clouds which rent machines declare alike."""
