"""The abstract values of a rehearsal: what a name can hold while a training program is run on paper.

All are plain objects that one run owns: nothing is copied or joined. Two values are the same if they are one object; two
reads of the same unknown thing (`args.epochs`, twice) share its `key`.
"""
