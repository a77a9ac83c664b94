"""The tables of the catalogue that AWS answers for: its answers as rows."""
