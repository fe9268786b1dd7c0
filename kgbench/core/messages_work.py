"""Messages about what a command meets: the machine, runs, models and providers; and warnings."""

from __future__ import annotations

from typing import Final

from kgbench.core.message import Message

WORK: Final[dict[str, Message]] = {
    # --- this machine ---
    "KGB301": Message("Kernels run on Linux only.", "Use a Linux machine, WSL 2 or a Linux container."),
    "KGB302": Message("torch is not installed.", "Install its CPU build or `kgbench[torch]`; see docs/install.md."),
    "KGB303": Message("References cannot be run without torch.", "Install torch, or give `--no-run`."),
    "KGB304": Message("The process that runs references failed before it ran one.", "The end of its output is quoted."),
    "KGB305": Message("nvidia-smi lists no GPU.", "Use `--device cpu`; in a container, pass the GPU in."),
    "KGB306": Message("There is no GPU of that number.", "Those that are visible count from 0."),
    "KGB307": Message("A GPU's lock file cannot be opened.", "Ask the file's owner to remove it."),
    "KGB308": Message("A GPU's lock file keeps disappearing.", "Somebody removes it; try again."),
    "KGB309": Message(
        "No device is left that computes as it should.",
        "What each one did is named; look at the driver's log. `--resume` judges those alone that were judged then.",
    ),
    "KGB310": Message(
        "The fork server did not start.", "The end of its output is quoted; a broken torch is the usual cause."
    ),
    "KGB311": Message(
        "The fork server has threads or has touched a GPU, so a fork of it could hang.",
        "Unset what makes Python import more at its start, such as PYTHONPATH hooks and profilers.",
    ),
    "KGB312": Message("A referee did not start.", "Its reason is named; often memory, on the GPU or in RAM."),
    "KGB313": Message("Fork servers died again and again.", "Look at the system's log: memory is the usual cause."),
    "KGB314": Message(
        "The fork server does not answer.", "The end of its output is quoted; often the machine is full."
    ),
    "KGB315": Message(
        "The sandbox is weaker than `--require-sandbox` asks.", "docs/sandbox.md says how to get what is missing."
    ),
    "KGB316": Message(
        "The session was closed before the candidate was judged.", "Close an Evaluator when its checks are done."
    ),
    "KGB317": Message("`kgbench try-backend`: the model could not be run.", "The end of its output is quoted."),
    "KGB330": Message("Ray is not installed.", "`pip install 'kgbench[ray]'`, on the driver and on every node."),
    "KGB331": Message(
        "No Ray cluster can be reached at the address.",
        "`ray start --head` starts one and prints its address; `ray status` looks at it.",
    ),
    "KGB332": Message(
        "No node of the Ray cluster can judge, or none is left that can.",
        "The reason of each is named; what was finished is kept, and `kgbench run --resume RUN --ray …` goes on.",
    ),
    "KGB333": Message(
        "The Ray cluster does not answer any more.",
        "Look at its head node; what was finished is kept, and `kgbench run --resume RUN --ray …` goes on.",
    ),
    "KGB340": Message("Somebody cancelled the evaluation.", "Ask again; the candidate's processes are ended."),
    "KGB343": Message("`kgbench mcp` cannot listen there.", "Take another port; the system's reason is named."),
    "KGB344": Message(
        "`--repro` found no short file that shows what is wrong.", "`kgbench show RUN/ID` has all that is known."
    ),
    # --- runs and their folders ---
    "KGB401": Message("Another kgbench is writing this run.", "Wait until it has ended."),
    "KGB402": Message("No run can be written there.", "Give another folder with `--out`."),
    "KGB403": Message("A run cannot be continued: it cannot be written.", "Look at its permissions and at the disk."),
    "KGB404": Message("There is no run in that folder at all.", "Give the run's path, or where runs are: `--out`."),
    "KGB405": Message("The prefix fits the ids of several runs.", "Write more of the id."),
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
    "KGB415": Message("The run has no such sample of the problem.", "The existing ones are named."),
    "KGB416": Message("The run is too old to be continued.", "Start a new run."),
    "KGB417": Message("`--resume` draws a new seed.", "Leave `--seed` out."),
    "KGB418": Message("`--resume` with an option that the run was not started with.", "Leave it out."),
    "KGB419": Message("The run's `--model` is a path from another folder.", "Run the command from there."),
    "KGB420": Message("Problems of the run are gone.", "Put their files back, or start a new run."),
    "KGB430": Message("The run is a published one, which stays as it is.", "`kgbench reproduce` judges it again."),
    "KGB431": Message(
        "`kgbench publish`: a check does not hold.", "Each line with WRONG says what to do; `--draft DIR` writes it."
    ),
    "KGB432": Message("`kgbench publish`: another run lies there already.", "Give it another name with `--as`."),
    "KGB433": Message("`kgbench publish --draft` into the folder of published runs.", "Give a folder elsewhere."),
    "KGB434": Message("A published run is not as it was published.", "Restore the file that is named from git."),
    "KGB435": Message("What is published cannot be written there.", "Look at the folder's permissions and free space."),
    "KGB436": Message("A file of records cannot be read.", "Restore it with git, or remove it and verify again."),
    "KGB437": Message("`kgbench verify --records`: this run cannot set a record.", "The reason is named."),
    "KGB438": Message(
        "`kgbench publish --leave-out`: not a later round, or a problem without a result.",
        "Add `--after FOLDER`, and name problems of the run.",
    ),
    # --- models and providers ---
    "KGB501": Message("`--model` is missing.", "Say whose kernels; `kgbench run --model examples` works everywhere."),
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
        "The file is a KernelBench sample, and its problem is none of those of this run.",
        "Give `--suite kernelbench:PATH`, with a checkout of KernelBench; docs/kernelbench.md has more.",
    ),
    "KGB510": Message(
        "An installed package's provider is broken.",
        "Tell its author, or uninstall it; docs/extending.md says what a provider has.",
    ),
    "KGB520": Message("Prompts ask for no such language.", "Take one of those named."),
    "KGB521": Message(
        "`--shots` asks for more examples than there are in that language for other problems.",
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
        "`kgbench prompt --model`: no model is asked, since the kernels exist already.",
        "Name a model that is asked, or leave `--model` out.",
    ),
    "KGB525": Message("Examples in a prompt are functions, and the problem is a module.", "Leave `--shots` out."),
    "KGB530": Message(
        "The SDK that the provider asks through is not installed, or is too old for the request.",
        "`pip install --upgrade 'kgbench[models]'`.",
    ),
    "KGB531": Message(
        "The provider has no key to ask with.",
        "Set the variable that is named; `--dry-run` shows what would be sent without a key.",
    ),
    "KGB532": Message(
        "What stands after the provider's colon names no model, or no server.",
        "`kgbench run` without `--model` lists how each provider is named; a key goes into a variable.",
    ),
    "KGB533": Message(
        "`--thinking` is none of its values, or none that this model takes.",
        "Take one of those named, or leave it out.",
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
        "An option for asking a model was given, and the kernels exist already.", "Leave it out, or name a model."
    ),
    "KGB562": Message("The provider has no batch interface.", "Leave `--batch` out."),
    "KGB563": Message("`--batch` with `--rounds`.", "Give one of them: a round needs the verdict before it."),
    "KGB564": Message(
        "`--budget-usd` for a model whose price is unknown.",
        "Add the price to a file of your own, as docs/models.md says, or leave the option out.",
    ),
    "KGB566": Message("`--dry-run` where nobody would be asked.", "Leave it out, or name a model."),
    "KGB567": Message("`kgbench generate` with kernels that exist already.", "`kgbench run` judges them."),
    "KGB568": Message("`kgbench generate` with `--rounds`.", "Ask and judge together, with `kgbench run`."),
    "KGB569": Message("`kgbench evaluate` of a run in which nobody was asked.", "`kgbench run --resume RUN` goes on."),
    "KGB570": Message("`--model replay` names no run.", "Write `--model replay:last`, or a run's folder or id."),
    "KGB571": Message(
        "The run that is to be replayed holds no replies.", "The `dir:` that is named judges its kernels again."
    ),
    "KGB572": Message("The run that is to be replayed asked for none of the selected problems.", "Select others."),
    "KGB580": Message("The package whose kernels are to be judged is not installed.", "Install it; its name is named."),
    "KGB581": Message("The package has a kernel for none of the selected problems.", "Those that it has are named."),
    "KGB582": Message("Another version of the package is installed.", "Leave the version out, or install that one."),
    "KGB583": Message(
        "`--repro` is for verdicts on installed packages alone.", "Name one of a run with `--model liger` or the like."
    ),
    "KGB584": Message("`--repro` has nothing that it can show.", "The reason is named."),
    "KGB585": Message("`--repro` cannot write its file.", "Name another file."),
    # --- warnings ---
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
    "KGB609": Message("The run has not finished.", "`kgbench run --resume RUN` does what is missing."),
    "KGB610": Message(
        "Results by another version of a problem's file are left out of the table.",
        "The `--resume` that found it judges their problems again.",
    ),
    "KGB611": Message(
        "`kgbench new` wrote the skeleton that any source gets: the library knows no such operator.",
        "Look at the name; the reason is given. For one of ATen's install torch and expecttest.",
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
    "KGB629": Message(
        "A problem of a checkout of KernelBench is left out: its file cannot be used.", "The reason is named."
    ),
    "KGB630": Message(
        "An entry point of an installed package is not used: it is broken, or its name is taken.",
        "The package, the entry point and the reason are named; docs/extending.md says what an entry point has.",
    ),
    "KGB640": Message(
        "The run is one shard of several; what the others judge counts as missing in its table.",
        "`kgbench merge RUN…` makes one run of all shards.",
    ),
    "KGB641": Message(
        "The merged run lacks parts, or parts that did not finish.",
        "`kgbench run --resume` of a part and `kgbench merge` once more, or `--resume` of the merged run.",
    ),
    "KGB642": Message(
        "A device of the Ray cluster is not used: its node is gone, lacks something or is not like the others.",
        "The node and what differs are named; the others judge on. `--mixed-devices` takes GPUs of several models.",
    ),
    "KGB643": Message(
        "What judged on a device of the Ray cluster was lost, and is started again.",
        "Nothing; its candidates are judged again. Where it happens often, look at the node's memory.",
    ),
    "KGB644": Message("A node has no GPU for Ray.", "It judges nothing; with `--device cpu` it does."),
    "KGB645": Message(
        "An actor has not started yet: perhaps Ray has given the GPU or the cores of its node to somebody else.",
        "It is waited for; `ray status` shows what is taken, and `--jobs` asks for fewer cores.",
    ),
    "KGB650": Message("The records of the device cannot be read, so none is shown.", "Restore the file from git."),
    "KGB651": Message(
        "`kgbench verify --records`: the device was busy before or after, so no record was entered.",
        "End what else runs on it and verify again.",
    ),
}
"""Messages about work, by number."""
