"""What every finished plan is made of: frozen data, and the rules that lay it out."""
