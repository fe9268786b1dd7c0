"""The numbers of all messages: what each means and what to do about it. ``docs/errors.md`` is printed from this table.

A number is written where its message is raised; the words of the message stand there too, with what is wrong in this
one case. Numbers do not move: one that is not needed any more is not given to something else.

``python -m kgbench.core.messages > docs/errors.md`` writes the document anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Message:
    """A situation, not one wording of it."""

    meaning: str
    step: str
    """What to do next."""
    places: str = ""
    """Why it is said at more than one place of the code; empty where it is said at one."""


GROUPS: Final[dict[str, str]] = {
    "KGB1": "The command line",
    "KGB2": "Problem files and expressions",
    "KGB3": "This machine",
    "KGB4": "Runs and their folders",
    "KGB5": "Whose kernels",
    "KGB6": "Said beside the work, without an end to it",
}

_EACH_KEY: Final = "each key says it of its own value"

MESSAGES: Final[dict[str, Message]] = {
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
        "`--fast-at` is no list of positive numbers.", "Write for example `--fast-at 0.5,1,2`, each below 1000."
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
        "`kgbench validate`: some files are wrong.", "Mend what the lines above name, each with its own number."
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
    "KGB131": Message("`--suite` is not one that there is.", "Write opinfo, smoke or trace:FILE."),
    "KGB132": Message(
        "The trace file of `--suite` cannot be read.", "The line is named; docs/suites.md has the format.",
        "a file can be missing, no text, or no trace",
    ),
    "KGB133": Message(
        "`--suite opinfo`: PyTorch's sample inputs cannot be listed.", "The cause is named; expecttest is needed."
    ),
    "KGB134": Message(
        "A suite has no call of the problems that are selected.", "Select others; the most frequent reason is named."
    ),
    "KGB135": Message("The suite of a stored run cannot be read.", "Start a new run."),
    "KGB140": Message("`kgbench selftest exploits`: there is no such exploit.", "Take the one named, or give no name."),
    "KGB160": Message("The run has no winner to verify.", "`kgbench report RUN` prints its table."),
    "KGB161": Message("The run was made on another kind of device.", "Give `--device`, or start a new run here."),
    "KGB170": Message("`kgbench compare` got one run.", "Give two or more."),
    "KGB171": Message("Runs that are compared have no problem in common.", "Compare runs of the same problems."),
    "KGB172": Message(
        "Runs that are compared differ in what decides about right or fast: device, library, problem files, policy.",
        "Make both on one machine with the same versions, or read the figures with care: `--anyway`.",
    ),
    "KGB174": Message("`kgbench leaderboard`: the folder has no run to rank.", "Give the folder that runs lie in."),
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
        "each names its own options",
    ),
    # --- problem files and expressions ---
    "KGB201": Message("Two folders define the same problem.", "Rename one of the two files."),
    "KGB202": Message("A problem folder does not exist.", "Give a folder that holds `<source>/<name>.yaml`."),
    "KGB203": Message(
        "A problem file lies in a folder that cannot be a source.",
        "Move it to aten, vllm, cublas or a folder of your own: lower case letters, digits and _.",
        "said of a folder of files and of one file",
    ),
    "KGB204": Message("The folder given is a source's own.", "Give the folder above it."),
    "KGB205": Message(
        "The file does not begin with summary, kind and category.", "Put the three first, one line each."
    ),
    "KGB206": Message("`kgbench list` reads another head than YAML does.", "Write the three lines without escapes."),
    "KGB208": Message("The file cannot be read.", "Look at its permissions."),
    "KGB209": Message("The file is not UTF-8.", "Save it as UTF-8."),
    "KGB210": Message(
        "The file is not YAML.", "Look at the line named, and at the one above it.",
        "the parser has one error with a line and one without",
    ),
    "KGB211": Message("The file is empty.", "`kgbench new` writes one to begin with."),
    "KGB212": Message("A line is still as `kgbench new` wrote it.", "Change it and remove its comment EDIT."),
    "KGB213": Message("summary, kind and category are not in this order.", "Begin the file with them."),
    "KGB214": Message("A text has to stand on one line.", "Shorten it; details belong under doc."),
    "KGB220": Message(
        "There is no such key.", "The closest is named; docs/problem-format.md lists all.",
        "said at the first reading and again when all mistakes are looked for",
    ),
    "KGB221": Message("A key stands twice.", "Keep one; YAML alone would drop the first without a word."),
    "KGB222": Message("A key is missing.", "Add it as the message says.", "keys are needed for different reasons"),
    "KGB223": Message("A key is no text to YAML.", "Put it between quotes."),
    "KGB224": Message(
        "A key stands where it means nothing.", "Remove it, or change what it depends on.",
        "keys depend on different things",
    ),
    "KGB225": Message("Something that must not be empty is.", "Give at least one, or remove the key.", _EACH_KEY),
    "KGB230": Message("A value is of another kind than the key takes.", "Write what is expected.", _EACH_KEY),
    "KGB231": Message(
        "YAML reads a value as something else than it seems.",
        "Write it as the message says: `1e-2` is text, `010` is 8, `no` is false.",
        "YAML has several such traps",
    ),
    "KGB232": Message("A word is none of those that the format knows.", "The closest is named.", _EACH_KEY),
    "KGB233": Message("A name stands for nothing in this file.", "The closest is named.", _EACH_KEY),
    "KGB240": Message(
        "entry is no signature of the kind that is understood.",
        "Write `name(x: Tensor, n: int, *, alpha: Scalar = 1) -> Tensor`.",
        "each part of the signature says it of its own",
    ),
    "KGB241": Message("The function in entry is not named as the problem.", "Name it as the message says."),
    "KGB242": Message(
        "A parameter of entry is not described.",
        "Add it under arguments.",
        "tensors always are, other values where a case is no call that gives them",
    ),
    "KGB243": Message(
        "An argument does not fit its type in entry.", "Change one of the two.", "tensors and numbers have other keys"
    ),
    "KGB244": Message(
        "draw does not say how values are drawn.", "Write for example `normal()` or `integers(-8, 8)`.",
        "the form and the count of arguments are looked at apart",
    ),
    "KGB245": Message("A variable cannot have that name.", "Take another one.", "derived ones have more names taken"),
    "KGB246": Message(
        "fuzz does not say what to draw from.", "Write `{range: [1, 64]}` or `{choice: [a, b]}`.",
        "the form and the two ends are looked at apart",
    ),
    "KGB247": Message(
        "A path names no function or library call.", "Write `aten:add.Tensor` or `package.module:function`.",
        "baseline takes library calls, other keys functions alone",
    ),
    "KGB248": Message(
        "reference is no function that can be called with entry's parameters.",
        "Write `def reference(…):` with each of them.",
        "its syntax, name and parameters are looked at apart",
    ),
    "KGB249": Message("ulps is not above 0.", "Write a positive number, or `rule: exact`."),
    "KGB250": Message("No overload is required, so nothing would be judged.", "Remove one `required: false`."),
    "KGB251": Message("The entry returns nothing and writes nothing.", "Let it return a Tensor, or write an argument."),
    "KGB252": Message("A problem that is timed lacks bench cases.", "Give cases for cpu and for one or more GPUs."),
    "KGB253": Message(
        "A case does not give a variable that is read.",
        "Add it there or under defaults.",
        "expressions read them, and calls have them as `$name`",
    ),
    "KGB254": Message("A variable is read before it is derived.", "Put the one that reads below the other."),
    "KGB255": Message("An expression reads a variable that no case gives.", "The closest is named."),
    "KGB256": Message("No expression reads a variable that a case gives.", "It is misspelt, or can be removed."),
    "KGB257": Message(
        "A case's call cannot be read, or does not fit the entry.",
        "Write it as in a trace, `((T([5, 3], f32), 1), {'dim': 0})`, with `$name` for a variable of the case.",
        "a file's own text is read before its variables have values, and again when they have",
    ),
    "KGB260": Message("An expression is too long.", "Split it with variables."),
    "KGB261": Message("An expression cannot be parsed.", "Write it as in Python."),
    "KGB262": Message(
        "An expression says more than expressions may.", "docs/problem-format.md lists operators and functions."
    ),
    "KGB263": Message("An expression has no value in a case.", "Look at the case's numbers; the cause is named."),
    "KGB264": Message("A reference reads a variable that there is not.", "It may read entry's parameters and torch."),
    "KGB265": Message("An expression's value does not fit its key.", "The case and what is wanted are named."),
    "KGB270": Message("The reference fails on a small case on the CPU.", "The case and what it raised are named."),
    "KGB271": Message("The reference's answer has another shape than entry's.", "Change the reference or the shape."),
    "KGB272": Message("The reference crashed its process, or never ended.", "Its last words are named."),
    "KGB273": Message("canonical fails on the right answer of a small case.", "The case and what it raised are named."),
    # --- this machine ---
    "KGB301": Message(
        "Kernels run on Linux only.", "Use a Linux machine, WSL 2 or a Linux container.",
        "a command says it before it makes a folder, a session for programs",
    ),
    "KGB302": Message(
        "torch is not installed.", "Install its CPU build or `kgbench[torch]`; see the README.",
        "a command says it before it makes a folder, a session for programs",
    ),
    "KGB303": Message("References cannot be run without torch.", "Install torch, or give `--no-run`."),
    "KGB304": Message("The process that runs references did not start to.", "Its last words are named."),
    "KGB305": Message("nvidia-smi lists no GPU.", "Use `--device cpu`; in a container, pass the GPU in."),
    "KGB306": Message("There is no GPU of that number.", "Those that are visible count from 0."),
    "KGB307": Message("A GPU's lock file cannot be opened.", "Ask the file's owner to remove it."),
    "KGB308": Message("A GPU's lock file comes and goes.", "Somebody removes it; try again."),
    "KGB309": Message(
        "No device is left that computes as it should.", "What each one did is named; look at the driver's log."
    ),
    "KGB310": Message("The fork server did not start.", "Its last words are named; a broken torch is the usual cause."),
    "KGB311": Message(
        "The fork server has threads or has touched a GPU, so a fork of it could hang.",
        "Unset what makes Python import more at its start, such as PYTHONPATH hooks and profilers.",
    ),
    "KGB312": Message(
        "A referee did not start.", "Its reason is named; often memory, on the GPU or in RAM.",
    ),
    "KGB313": Message("Fork servers died again and again.", "Look at the system's log: memory is the usual cause."),
    "KGB314": Message("The fork server does not answer.", "Its last words are named; often the machine is full."),
    "KGB315": Message(
        "The sandbox is weaker than `--require-sandbox` asks.", "docs/sandbox.md says how to get what is missing."
    ),
    "KGB316": Message(
        "The session was closed before the candidate was judged.", "Close an Evaluator when its checks are done.",
        "it was waiting for a seat, or being judged",
    ),
    # --- runs and their folders ---
    "KGB401": Message("Another kgbench is writing this run.", "Wait until it has ended."),
    "KGB402": Message("No run can be written there.", "Give another folder with `--out`."),
    "KGB403": Message(
        "A run cannot be gone on with, since it cannot be written.", "Look at its permissions and at the disk.",
        "on opening, and when the new segment is written",
    ),
    "KGB404": Message("There is no run in that folder at all.", "Give the run's path, or where runs are: `--out`."),
    "KGB405": Message("Several runs begin like that.", "Write more of the id."),
    "KGB406": Message("There is no such run.", "Take one of the newest, which are named, or `last`."),
    "KGB407": Message("A run's results cannot be read.", "Look at the file's permissions."),
    "KGB408": Message("The folder is no run: it has no run.json.", "Give a folder that `kgbench run` made."),
    "KGB409": Message("run.json cannot be read, or is no JSON.", "Restore it; results.jsonl beside it is whole."),
    "KGB410": Message("run.json is not a run's.", "Give a folder that `kgbench run` made."),
    "KGB411": Message("The run was written by a newer kgbench.", "Update kgbench."),
    "KGB412": Message("No line of results.jsonl can be read.", "Restore it from a copy; `--resume` judges all again."),
    "KGB413": Message(
        "The run can no longer be written, for example on a full disk.",
        "Make room, then `kgbench run --resume RUN`; what was finished is kept.",
    ),
    "KGB414": Message("The run ended before it came to that problem.", "`kgbench run --resume RUN` goes on with it."),
    "KGB415": Message("The run has no such sample of the problem.", "Those that there are are named."),
    "KGB416": Message("The run is too old to be gone on with.", "Start a new run."),
    "KGB417": Message("`--resume` draws a new seed.", "Leave `--seed` out."),
    "KGB418": Message(
        "`--resume` with an option that the run was not begun with.",
        "Leave it out.",
        places="what to ask a model is looked at where such options are",
    ),
    "KGB419": Message("The run's `--model` is a path from another folder.", "Run the command from there."),
    "KGB420": Message("Problems of the run are gone.", "Put their files back, or start a new run."),
    # --- whose kernels ---
    "KGB501": Message(
        "`--model` is missing.",
        "Say whose kernels; `kgbench run --model examples` works everywhere.",
        places="run takes kernels that are there too, generate only models",
    ),
    "KGB502": Message("There is no such provider.", "Take one of those named; a path to one .py file works too."),
    "KGB503": Message("The provider takes nothing after its colon.", "Leave the colon and what follows out."),
    "KGB504": Message("`--model dir` names no folder.", "Write `--model dir:my_kernels`."),
    "KGB505": Message("There is no such folder or file.", "Look at the path after `dir:`."),
    "KGB506": Message(
        "The folder has a kernel for none of the selected problems.",
        "Why each file was not matched is named; docs/coming-from.md lists the layouts.",
    ),
    "KGB507": Message(
        "The path of a single file names none of the selected problems.",
        "Name it `<source>/<name>.py`, or add `--problems ID`.",
    ),
    "KGB508": Message("There are no examples in that language.", "Take one of those named."),
    "KGB509": Message(
        "The file is a KernelBench sample, for a module of PyTorch and no problem of ours.",
        "docs/coming-from.md says what can be taken over.",
    ),
    "KGB520": Message("Prompts ask for no such language.", "Take one of those named."),
    "KGB521": Message(
        "`--shots` asks for more examples than ship in that language for other problems.",
        "Ask for as many as are named, or in Triton, which has the most.",
    ),
    "KGB522": Message(
        "`--target-gpu` is no GPU whose numbers are known.", "Take one of those named, or leave the option out."
    ),
    "KGB523": Message(
        "`kgbench prompt` shows one problem's prompt, and no problem is named or several are.",
        "Name one, or list the sizes of many with `--sizes`.",
    ),
    "KGB524": Message(
        "`kgbench prompt --model`: nobody is asked there, since the kernels are at hand.",
        "Name a model that is asked, or leave `--model` out.",
    ),
    "KGB530": Message(
        "The SDK that the provider asks through is not installed, or is too old for the request.",
        "`pip install --upgrade 'kgbench[models]'`.",
        places="an SDK that is not there is seen before one that is too old",
    ),
    "KGB531": Message(
        "The provider has no key to ask with.",
        "Set the variable that is named; `--dry-run` shows what would be sent without a key.",
        places="each provider's key stands in a variable of its own",
    ),
    "KGB532": Message(
        "What stands after the provider's colon names no model, or no server.",
        "Write `--model anthropic:MODEL`, `openai:MODEL` or `openai-compatible:URL#MODEL`; a key goes into a variable.",
        places="each provider wants something else after its colon",
    ),
    "KGB533": Message(
        "`--thinking` is none of its values, or none that this model takes.",
        "Take one of those named, or leave it out.",
        places="what a model takes depends on the model",
    ),
    "KGB534": Message(
        "The provider refuses the key, or its account cannot pay.",
        "Look at the key; what had been answered is kept, and `kgbench run --resume last` goes on.",
    ),
    "KGB535": Message("The provider knows no model of that name.", "Look at the id; its own list of models has it."),
    "KGB536": Message(
        "The model does not take `--temperature`, `--thinking` or `--max-tokens` as given.",
        "Change it or leave it out; the provider's own words are passed on.",
    ),
    "KGB537": Message(
        "A file of aliases or prices cannot be read, or an entry of it is not as it should be.",
        "The package's own, `kgbench/models/aliases.toml` and `prices.toml`, show how they are written.",
    ),
    "KGB538": Message("An alias with something after a colon.", "Write the provider's name instead; it is named."),
    "KGB550": Message("`--model exec` names no command.", "Write for example `--model 'exec:sh my_agent.sh'`."),
    "KGB551": Message(
        "An agent's command cannot be split into words.", "Close its quotes; docs/agents.md has command lines."
    ),
    "KGB552": Message("An agent's program is not there.", "Install it, or write its full path."),
    "KGB553": Message("Agents run on Linux only.", "Generate on a Linux machine; `kgbench evaluate` runs elsewhere."),
    "KGB560": Message(
        "A stored reply of a run cannot be read.", "Remove the file that is named; its question is asked again."
    ),
    "KGB561": Message(
        "An option for asking a model stands beside kernels that are there.", "Leave it out, or name a model."
    ),
    "KGB562": Message("The provider has no batch interface.", "Leave `--batch` out."),
    "KGB563": Message("`--batch` with `--rounds`.", "Give one of them: a round needs the verdict before it."),
    "KGB564": Message(
        "`--budget-usd` for a model whose price is unknown.",
        "Add the price to a file of your own, as docs/models.md says, or leave the option out.",
    ),
    "KGB566": Message("`--dry-run` where nobody would be asked.", "Leave it out, or name a model."),
    "KGB567": Message("`kgbench generate` with kernels that are there.", "`kgbench run` judges them."),
    "KGB568": Message("`kgbench generate` with `--rounds`.", "Ask and judge together, with `kgbench run`."),
    "KGB569": Message("`kgbench evaluate` of a run in which nobody was asked.", "`kgbench run --resume RUN` goes on."),
    "KGB570": Message("`--model replay` names no run.", "Write `--model replay:last`, or a run's folder or id."),
    "KGB571": Message(
        "The run that is to be replayed holds no replies.", "The `dir:` that is named judges its kernels again."
    ),
    "KGB572": Message("The run that is to be replayed asked for none of the selected problems.", "Select others."),
    # --- said beside the work ---
    "KGB601": Message("The command was interrupted.", "`kgbench run --resume last` does the rest of a run."),
    "KGB602": Message("A bound of `--fail-under` does not hold; the exit code is 1.", "Both numbers are named."),
    "KGB603": Message(
        "Fewer candidates than hoped for run at once: one more did not start, or memory ran out.",
        "It goes on with these; `--jobs` sets how many.",
    ),
    "KGB604": Message(
        "A GPU stopped computing as it should and gets no further work.", "Its work is done on the others."
    ),
    "KGB605": Message("Another kgbench has the GPU.", "It begins when that one ends; Ctrl-C gives up."),
    "KGB606": Message("Fewer GPUs are free than `--gpus` asks for.", "It goes on with these."),
    "KGB607": Message(
        "The last line of results.jsonl is cut off: the run was killed there.", "`--resume` judges that one again."
    ),
    "KGB608": Message("The run has no results, or no file of them.", "No candidate was finished; `--resume` begins."),
    "KGB609": Message("The run has not come to its end.", "`kgbench run --resume RUN` does what is missing."),
    "KGB610": Message(
        "Results by another version of a problem's file are left out of the table.",
        "The `--resume` that found it judges their problems again.",
    ),
    "KGB611": Message(
        "`kgbench new aten` wrote the skeleton that any source gets.",
        "For one of ATen's look at its name, and install torch and expecttest.",
    ),
    "KGB613": Message(
        "Questions are without a reply: a rate limit, a server that failed, a spent budget.",
        "`kgbench run --resume RUN` asks only these again.",
    ),
    "KGB614": Message(
        "run.json cannot be read, and its results are shown all the same.",
        "Shares are of the problems that have a result; restore run.json from a copy.",
    ),
    "KGB615": Message(
        "Lines of results.jsonl cannot be read and are left out.", "`--resume` judges what they were about again."
    ),
    "KGB618": Message(
        "The page of a run has no charts, only their tables: the library that draws them is not installed.",
        "pip install 'kgbench[page]' and write the page again.",
    ),
    "KGB620": Message("A stored candidate cannot be judged again.", "The reason is named; the others are judged."),
    "KGB621": Message(
        "Device or software are not those of the run.", "Read a speedup that left its interval with that in mind."
    ),
    "KGB625": Message("Runs that are compared differ in something.", "Bear in mind that it may be the cause."),
    "KGB626": Message("`kgbench leaderboard`: a run cannot be read.", "It is left out; the reason is named."),
    "KGB627": Message(
        "The run was written by an older kgbench that kept less.",
        "What it kept is shown; its candidates can be judged anew with `--model dir:`.",
    ),
    "KGB628": Message("One GPU is used and there are more.", "`--gpus all`, or `--device cuda:0,1`, uses more."),
}  # fmt: skip
"""By number."""

_HEAD: Final = """\
# Errors and warnings by number

Printed from `kgbench/core/messages.py` by `python -m kgbench.core.messages > docs/errors.md`; do not edit it by hand.

Each error and warning has a number, which stays the same from release to release: `kgbench: KGB113: there is no problem
'sofmax'; closest: aten/softmax`. The message says what is wrong in that one case, where, and what to do; this list says
what the number stands for. In Python it is the error's `number`. What becomes of a kernel is no error but an outcome,
and has none."""


def document() -> str:
    """The text of docs/errors.md."""
    parts = [_HEAD]
    for begin, title in GROUPS.items():
        of_group = ((number, each) for number, each in MESSAGES.items() if number.startswith(begin))
        rows = [f"| {number} | {each.meaning} | {each.step} |" for number, each in of_group]
        parts += ["", f"## {begin}xx: {title}", "", "| number | what it means | what to do |", "|---|---|---|", *rows]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    print(document(), end="")
