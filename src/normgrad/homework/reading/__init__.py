"""A student's program as an equation, beside the definitions: no points come from it, the diagnosis does.

    from normgrad.homework.reading.beliefs import diagnoses
    from normgrad.homework.reading.equations import equations_of
    verdict = verify(text, definitions, outputs=("dx", "dw"), name="rmsnorm_backward", library="numpy")
    for equation in equations_of(verdict, definitions):   # one for each output that is refuted
        equation.yours, equation.right                    # "rstd * wdy - ...", both as text
        equation.findings                                 # what leads from the one to the other, term by term
        diagnoses(equation, "rms-dx")                     # Diagnosis for the report, named where one edit explains it

`verify` is that of normgrad.verify, of a NumPy or torch function or of a Triton kernel with its binding; of an
operator without a norm's definitions the terms are those of its own symbols. `child.in_child(f)` runs f, which
returns a list of Diagnosis, in a process with limits, and gives [] for what takes too long. `tasks.Reads` says how a
task is read, and `tasks.read(reads, entry, program, wrong)` is all of this for a task: wrong are the outputs that the
contract has found wrong.

Where no equation names a mistake, `kinds` tells by which inputs come out right (their shapes, their digits), and of an
operator of the student's own `operators.explained` by what the gradient takes for a constant, or by a change of its
text with which it is right.
"""
