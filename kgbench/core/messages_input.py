"""Messages about what a user wrote: the command line and problem files."""

from __future__ import annotations

from typing import Final

from kgbench.core.message import Message

INPUT: Final[dict[str, Message]] = {
    # --- the command line ---
    "KGB101": Message(
        "An option, its value or an argument is not one that the command takes.",
        "`kgbench COMMAND --help` lists what it takes.",
    ),
    "KGB102": Message("There is no such command.", "`kgbench --help` lists the commands; the closest is named."),
    "KGB103": Message("`--deadline` is not PHASE=SECONDS.", "Write for example `--deadline compile=60`."),
    "KGB104": Message("`--timeout` and `--deadline whole=…` set the same limit.", "Give one of the two."),
    "KGB105": Message("`--timeout` is not above 0.", "Give a number of seconds."),
    "KGB106": Message(
        "`--fast-at` is not a list of positive numbers.", "Write for example `--fast-at 0.5,1,2`, each below 1000."
    ),
    "KGB107": Message(
        "A bound of `--fail-under` cannot be read.",
        "Write [SOURCE:]fast_P=SHARE with a share from 0 to 1, for example `cublas:fast_1=0.5`.",
    ),
    "KGB108": Message(
        "`--fail-under` bounds a source of which no problem is selected.",
        "Select problems of it, or leave the bound out.",
    ),
    "KGB109": Message(
        "`--drawn-for` is not MODEL#SAMPLE, or `--seed` is missing beside it.",
        "Copy the command that `kgbench show RUN/ID` prints.",
    ),
    "KGB110": Message(
        "`--mutant` names no standard mutant.", "The closest is named; `kgbench selftest mutants ID` shows all."
    ),
    "KGB111": Message(
        "`--device` is no device's name.", "Write auto, cpu, cuda, or chosen GPUs by number as in `cuda:0,2`."
    ),
    "KGB112": Message("A GPU after `cuda:` is no number.", "Write for example `cuda:0,2`."),
    "KGB113": Message("There is no problem of that name.", "Take one of those named, or look at `kgbench list`."),
    "KGB114": Message("Several problems have that name.", "Write the source too, for example `aten/add`."),
    "KGB115": Message("`--problems` matches nothing.", "Take one of the ids named, or look at `kgbench list`."),
    "KGB116": Message("There is no such source.", "Take one of those named, or give its folder with `--problem-dir`."),
    "KGB117": Message("There is no such category among the problems.", "`kgbench list` shows each one's category."),
    "KGB118": Message("The problem has no such overload.", "`kgbench show ID` lists its overloads."),
    "KGB119": Message("`kgbench new`: the source's name cannot be used.", "Take lower case letters, digits and _."),
    "KGB120": Message("`kgbench new`: no function can have that name.", "Take letters, digits and _, a letter first."),
    "KGB121": Message("`kgbench new`: kgbench ships that problem.", "Take another name, or a source of your own."),
    "KGB122": Message("`kgbench new`: the file exists, and stays as it is.", "Take another name, or remove the file."),
    "KGB123": Message("`kgbench new`: the file cannot be written.", "Give another folder with `--out`."),
    "KGB124": Message(
        "`kgbench validate`: the folder holds no problem file.", "Give a folder with `<source>/<name>.yaml` below it."
    ),
    "KGB125": Message("`kgbench validate`: there is no such file.", "Look at its path."),
    "KGB126": Message(
        "`kgbench validate`: some files are wrong.", "Fix what the lines above name, each with its own number."
    ),
    "KGB127": Message(
        "`kgbench check`: the file is missing, empty, too large or no text.", "Give one Python file with the entry."
    ),
    "KGB128": Message("`kgbench check`: the file defines the entries of several problems.", "Say which: give its id."),
    "KGB129": Message(
        "`kgbench check`: the file defines no problem's entry.",
        "Give the id; `kgbench show ID` prints the signature to define.",
    ),
    "KGB130": Message(
        "`kgbench new aten`: torch cannot say what that operator or overload is.",
        "Look at its name; torch and expecttest have to be installed.",
    ),
    "KGB131": Message("`--suite` is not one that there is.", "Write opinfo, smoke, or trace:FILE and the like."),
    "KGB132": Message(
        "The trace file of `--suite` cannot be read.", "The line is named; docs/suites.md has the format."
    ),
    "KGB133": Message(
        "`--suite opinfo`: PyTorch's sample inputs cannot be listed.", "The cause is named; expecttest is needed."
    ),
    "KGB134": Message(
        "A suite has no call of the problems that are selected.", "Select others; the most frequent reason is named."
    ),
    "KGB135": Message("The suite of a stored run cannot be read.", "Start a new run."),
    "KGB136": Message(
        "`--suite kernelbench:PATH` names no folder.", "Clone KernelBench, and write where it lies behind the colon."
    ),
    "KGB137": Message(
        "The folder of `--suite kernelbench:PATH` is no checkout of KernelBench.", "It has `level1/1_Name.py` in it."
    ),
    "KGB138": Message(
        "None of the modules that are selected can be judged.", "The reason for the first is named; fix its file."
    ),
    "KGB139": Message("The process that runs the files of modules did not finish.", "The end of its output is quoted."),
    "KGB140": Message("`kgbench selftest exploits`: there is no such exploit.", "Take the one named, or give no name."),
    "KGB141": Message("`--against` is for problems that are modules.", "Give `--suite kernelbench:PATH`, too."),
    "KGB142": Message("`validate --device` is for problems that are modules.", "Give `--suite kernelbench:PATH`, too."),
    "KGB143": Message(
        "`--suite torchbench:FILE`: parquet is read with pyarrow, which is not installed.",
        "`pip install 'kgbench[parquet]'`, or give the data set's trace text.",
    ),
    "KGB150": Message("`--shard` is not NUMBER/COUNT.", "Write for example `--shard 3/8`; numbers begin at 1."),
    "KGB151": Message(
        "An option that is about a whole run stands beside `--shard`.", "Give it to `kgbench merge`, or leave it out."
    ),
    "KGB152": Message("`kgbench merge` got one run.", "Give the folders of all parts."),
    "KGB153": Message(
        "Runs are no parts of one run: they differ in problems, model, policy, device or the like.",
        "Merge what one command judged with different `--shard`; `kgbench compare` puts runs side by side.",
    ),
    "KGB154": Message(
        "Two runs that are merged have a verdict on the same candidate.", "Leave out one of the two that are named."
    ),
    "KGB155": Message(
        "An option does not go with `--ray`, or only with it, or the cluster's address is none.",
        "`--ray auto` for the cluster that is here, else HOST:PORT as `ray start --head` prints it.",
    ),
    "KGB156": Message(
        "A run that devices of several models judged is no one table, or it has no device of the model given.",
        "Say which with `--on MODEL`; the models are named.",
    ),
    "KGB160": Message("The run has no winner to verify.", "`kgbench report RUN` prints its table."),
    "KGB161": Message("The run was made on another kind of device.", "Give `--device`, or start a new run here."),
    "KGB170": Message("`kgbench compare` got one run.", "Give two or more."),
    "KGB171": Message("Runs that are compared have no problem in common.", "Compare runs of the same problems."),
    "KGB172": Message(
        "Runs that are compared differ in what decides about correct or fast: device, library, problem files, policy.",
        "Make both on one machine with the same versions, or read the figures with care: `--anyway`.",
    ),
    "KGB174": Message("`kgbench leaderboard`: the folder has no run to rank.", "Give the folder that runs lie in."),
    "KGB176": Message(
        "A tool of `kgbench mcp` was asked for what it cannot do.", "The text says what; nothing was judged."
    ),
    "KGB177": Message(
        "`--http` is no address, or one that others can reach without a token.",
        "Write `--http 8765`, or set KGBENCH_MCP_TOKEN as the message says.",
    ),
    "KGB178": Message("The SDK that `kgbench mcp` needs is not installed.", "`pip install 'kgbench[mcp]'`."),
    "KGB180": Message("The page of `--html` cannot be written.", "Give another file."),
    "KGB185": Message(
        "`--format parquet` would write bytes to a terminal.", "Append `> FILE.parquet`, or give `--to FILE.parquet`."
    ),
    "KGB186": Message("`--format parquet` needs pyarrow.", "`pip install 'kgbench[parquet]'`, or take `--format csv`."),
    "KGB187": Message("What `report` should write cannot be written.", "Give another place with `--to`."),
    "KGB188": Message(
        "The file that `GITHUB_STEP_SUMMARY` names cannot be written.", "GitHub sets it; elsewhere unset it."
    ),
    "KGB189": Message(
        "`kgbench reproduce`: the run has no candidate that can be judged again.",
        "Copy the run's folder whole, `candidates/` included; a run of `--model baseline` has none.",
    ),
    "KGB190": Message(
        "Options of `kgbench report` or `kgbench leaderboard` that do not go together, or not with this run.",
        "Leave out what is named, or call it once for each.",
    ),
    "KGB191": Message("`kgbench run --trace`: the file cannot be written.", "Name a file in a folder of yours."),
    "KGB195": Message(
        "`kgbench export`: no kernel of the run can go into a package.",
        "The reasons are named; `--all-correct` also takes correct kernels that are not known to be faster.",
    ),
    "KGB196": Message("`kgbench export --backend`: the folder cannot be written.", "Name a new folder, my_backend."),
    "KGB197": Message("The folder holds no exported package.", "`kgbench export RUN --backend DIR` writes one."),
    "KGB198": Message(
        "`kgbench try-backend`: the model cannot be built, or an option says nothing.",
        "Take gpt2 or llama-small, or give a model of your own as `MODULE:FUNCTION`.",
    ),
    # --- problem files and expressions ---
    "KGB201": Message("Two folders define the same problem.", "Rename one of the two files."),
    "KGB202": Message("A problem folder does not exist.", "Give a folder that holds `<source>/<name>.yaml`."),
    "KGB203": Message(
        "A problem file lies in a folder that cannot be a source.",
        "Move it to aten, vllm, cublas or a folder of your own: lower case letters, digits and _.",
    ),
    "KGB204": Message("The folder given is a source's own.", "Give the folder above it."),
    "KGB205": Message(
        "The file does not begin with summary, kind and category.", "Put the three first, one line each."
    ),
    "KGB206": Message("`kgbench list` reads another head than YAML does.", "Write the three lines without escapes."),
    "KGB208": Message("The file cannot be read.", "Look at its permissions."),
    "KGB209": Message("The file is not UTF-8.", "Save it as UTF-8."),
    "KGB210": Message("The file is not YAML.", "Look at the line named, and at the one above it."),
    "KGB211": Message("The file is empty.", "`kgbench new` writes one to begin with."),
    "KGB212": Message("A line is still as `kgbench new` wrote it.", "Change it and remove its comment EDIT."),
    "KGB213": Message("summary, kind and category are not in this order.", "Begin the file with them."),
    "KGB214": Message("A text must be on one line.", "Shorten it; details belong under doc."),
    "KGB220": Message("There is no such key.", "The closest is named; docs/problem-format.md lists all."),
    "KGB221": Message("A key appears twice.", "Keep one; YAML alone would silently drop the first."),
    "KGB222": Message("A key is missing.", "Add it as the message says."),
    "KGB223": Message("A key is no text to YAML.", "Put it between quotes."),
    "KGB224": Message("A key has no meaning where it stands.", "Remove it, or change what it depends on."),
    "KGB225": Message("A value that must not be empty is empty.", "Give at least one, or remove the key."),
    "KGB230": Message("A value is of another kind than the key takes.", "Write what is expected."),
    "KGB231": Message(
        "YAML reads a value as something else than it seems.",
        "Write it as the message says: `1e-2` is text, `010` is 8, `no` is false.",
    ),
    "KGB232": Message("A word is none of those that the format knows.", "The closest is named."),
    "KGB233": Message("A name stands for nothing in this file.", "The closest is named."),
    "KGB240": Message(
        "entry is no signature of the kind that is understood.",
        "Write `name(x: Tensor, n: int, *, alpha: Scalar = 1) -> Tensor`.",
    ),
    "KGB241": Message("The function in entry is not named as the problem.", "Name it as the message says."),
    "KGB242": Message("A parameter of entry is not described.", "Add it under arguments."),
    "KGB243": Message("An argument does not fit its type in entry.", "Change one of the two."),
    "KGB244": Message("draw does not say how values are drawn.", "Write for example `normal()` or `integers(-8, 8)`."),
    "KGB245": Message("A variable cannot have that name.", "Take another one."),
    "KGB246": Message("fuzz does not say what to draw from.", "Write `{range: [1, 64]}` or `{choice: [a, b]}`."),
    "KGB247": Message(
        "A path names no function or library call.", "Write `aten:add.Tensor` or `package.module:function`."
    ),
    "KGB248": Message(
        "reference is no function that can be called with entry's parameters.",
        "Write `def reference(…):` with each of them.",
    ),
    "KGB249": Message("ulps is not above 0.", "Write a positive number, or `rule: exact`."),
    "KGB250": Message("No overload is required, so nothing would be judged.", "Remove one `required: false`."),
    "KGB251": Message("The entry returns nothing and writes nothing.", "Let it return a Tensor, or write an argument."),
    "KGB252": Message("A problem that is timed lacks bench cases.", "Give cases for cpu and for one or more GPUs."),
    "KGB253": Message("A case does not give a variable that is read.", "Add it there or under defaults."),
    "KGB254": Message("A variable is read before it is derived.", "Put the one that reads below the other."),
    "KGB255": Message("An expression reads a variable that no case gives.", "The closest is named."),
    "KGB256": Message("No expression reads a variable that a case gives.", "It is misspelt, or can be removed."),
    "KGB257": Message(
        "A case's call cannot be read, or does not fit the entry.",
        "Write it as in a trace, `((T([5, 3], f32), 1), {'dim': 0})`, with `$name` for a variable of the case.",
    ),
    "KGB258": Message(
        "The signature of a BLAS routine or of an operator of vLLM is none, or does not fit entry.",
        "docs/problem-format.md, signature, has what to write; entry has a parameter for each argument.",
    ),
    "KGB260": Message("An expression is too long.", "Split it with variables."),
    "KGB261": Message("An expression cannot be parsed.", "Write it as in Python."),
    "KGB262": Message(
        "An expression says more than expressions may.", "docs/problem-format.md lists operators and functions."
    ),
    "KGB263": Message("An expression has no value in a case.", "Look at the case's numbers; the cause is named."),
    "KGB264": Message("A reference reads a variable that there is not.", "It may read entry's parameters and torch."),
    "KGB265": Message("An expression's value does not fit its key.", "The case and what is wanted are named."),
    "KGB266": Message("A case is larger than prompts say that a call may be.", "Make it smaller; the bound is named."),
    "KGB270": Message("The reference fails on a small case on the CPU.", "The case and what it raised are named."),
    "KGB271": Message("The reference's answer has another shape than entry's.", "Change the reference or the shape."),
    "KGB272": Message("The reference crashed its process, or never ended.", "The end of its output is quoted."),
    "KGB273": Message("canonical fails on the right answer of a small case.", "The case and what it raised are named."),
    "KGB274": Message("The reference gives something else than edges promise.", "Change the row or the reference."),
}
"""Messages about input, by number."""
