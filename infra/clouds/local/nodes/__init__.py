"""The nodes of a site on this computer: processes or systemd-nspawn machines, and what removes them."""
