"""The tables of the catalogue that AWS answers for: its answers as rows, and how they are merged."""
