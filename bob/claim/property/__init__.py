"""Properties: their operations, what a crash left of an operation, and when that breaks a rule.

vocabulary.py   calls, what they make durable, units
subjects.py     overwrites, appends, directory operations
calls.py        operations as calls, and which changes these make durable
contents.py     what a crash can leave of a file
sightings.py    which file each observed name is
possible.py     sets of operations that can have happened, by names
attributes.py   what stat says beside
collateral.py   damage to what no operation was to change
presence.py     the oracle: of an operation, is nothing, a part or all there
rules.py        properties, their questions, and what breaks them
declaration.py  a property as a document
judged_case.py  one workload, judged by any number of properties
of_property.py  the claim
sentence.py     a crash that breaks it, in one sentence
"""
