"""How nodes of Alibaba Cloud are declared and started."""
