"""The layout of a packed data set's folder.

manifest.json     format, kind, classes, and the size in bytes of every file
train-0.npy …     images and labels; tokens, labels and, where texts have copies, their families; or tokens alone
held_out-0.npy …  likewise
"""

FORMAT = 1
MANIFEST = "manifest.json"
PARTS = ("train", "held_out")
