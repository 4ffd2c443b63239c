"""What the files around the book and the package promise, and the house rules that a program can check."""

import ast
import fnmatch
import re
import subprocess
import sys
from pathlib import Path

import pytest
import tomllib
import triton_matrix
import yaml
from packaging.requirements import Requirement

import normgrad

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
TESTS = sorted([*(ROOT / "tests").rglob("*.py"), *(ROOT / "tools").glob("*.py")])
DOCUMENTS = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf8"))
EXTRAS = PROJECT["project"]["optional-dependencies"]

# Written in pieces, so that this file does not hold what it looks for.
FOLDERS = ("ro" + "ot", "ho" + "me", "wo" + "rk", "tm" + "p", "op" + "t")
MACHINE = re.compile(r"(?<![\w.~-])/(?:" + "|".join(FOLDERS) + ")/")
REGISTRIES = re.compile(
    "|".join(
        (
            "pypi" + r"\.org",
            "python" + "hosted",
            "download" + r"\.pytorch",
            "npm" + "js",
        )
    )
)
UNFINISHED = re.compile("|".join(("TO" + "DO", "FIX" + "ME")))
NETWORK = {"aiohttp", "ftplib", "httpx", "requests", "urllib3", "urllib.request"}


def read(path):
    return (ROOT / path).read_text(encoding="utf8")


def tracked_texts():
    """Each text file of the repository, those not yet committed included; of a source distribution, its own list."""
    if (ROOT / "PKG-INFO").exists():
        listed = read("src/normgrad.egg-info/SOURCES.txt").split("\n")
    else:
        command = [
            "git",
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ]
        listed = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout.split("\0")
    for name in filter(None, listed):
        content = (ROOT / name).read_bytes() if (ROOT / name).is_file() else b"\0"
        if b"\0" not in content:
            yield name, content.decode("utf8")


def test_every_folder_of_modules_is_in_the_wheel():
    """A folder without __init__.py is found from a clone, and left out of what is installed."""
    assert [
        relative(path.parent)
        for path in SOURCES
        if not path.with_name("__init__.py").exists()
    ] == []


def lines_with(pattern):
    return [
        f"{name}:{number}: {line.strip()[:90]}"
        for name, text in tracked_texts()
        for number, line in enumerate(text.split("\n"), 1)
        if pattern.search(line)
    ]


def relative(path):
    return path.relative_to(ROOT).as_posix()


# The README and its neighbours


def examples():
    return re.findall(
        r"^```python\n(.*?)^```\n+```text\n(.*?)^```", read("README.md"), re.M | re.S
    )


def test_each_block_of_the_readme_is_followed_by_its_output():
    assert len(examples()) == read("README.md").count("```python") > 0


@pytest.mark.parametrize(("code", "output"), examples())
def test_readme_prints_what_it_shows(code, output):
    command = [sys.executable, "-W", "error", "-c", code]
    assert (
        subprocess.run(command, capture_output=True, text=True, check=True).stdout
        == output
    )


@pytest.mark.parametrize("name", DOCUMENTS)
def test_named_files_exist(name):
    text = read(name)
    linked = [
        target for target in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in target
    ]
    quoted = re.findall(r"`((?:src|tests|tools|book)/[\w/.*-]+)`", text)
    named = re.findall(
        r"`((?:(?:checks|symbolic|symbolic/derivations)/)?[\w*]+\.py|\w+/)`", text
    )
    modules = [f"src/normgrad/{module}" for module in named]
    missing = [
        path
        for path in [*linked, *quoted, *modules]
        if not list(ROOT.glob(path.rstrip("/")))
    ]
    assert missing == []


def make_targets(text):
    """Targets of the commands `make ...`, in backticks or at the start of a line."""
    commands = re.findall(
        r"`make ([a-z -]+)`|^[\s-]*(?:run: )?make ([a-z-]+)", text, re.M
    )
    return {target for pair in commands for target in " ".join(pair).split()}


@pytest.mark.parametrize(
    "path", [*DOCUMENTS, "book/intro.md", *map(relative, WORKFLOWS)]
)
def test_make_targets_exist(path):
    assert make_targets(read(path)) <= set(
        re.findall(r"^([a-z-]+):", read("Makefile"), re.M)
    )


def test_versions_agree():
    top = re.search(r"^## (\S+)", read("CHANGELOG.md"), re.M)[1]
    citation = str(yaml.safe_load(read("CITATION.cff"))["version"])
    assert {PROJECT["project"]["version"], citation, top} == {normgrad.__version__}


def test_the_source_distribution_is_the_repository():
    if not (ROOT / ".git").exists():
        pytest.skip("no repository to compare with: this is a source distribution")
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    tracked = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split("\n")
    lines = [line.split() for line in read("MANIFEST.in").split("\n")]
    grafted = {f"{line[1]}/" for line in lines if line[:1] == ["graft"]}
    # Beside what setuptools takes by itself.
    named = [
        "LICENSE",
        "setup.py",
        *(name for line in lines if line[:1] == ["include"] for name in line[1:]),
    ]
    left = [
        name for name in filter(None, tracked) if not name.startswith(tuple(grafted))
    ]
    assert [
        name
        for name in left
        if "/" in name or not any(fnmatch.fnmatch(name, pattern) for pattern in named)
    ] == []


# Workflows and the issue form


def jobs():
    for path in WORKFLOWS:
        for name, job in yaml.safe_load(path.read_text(encoding="utf8"))[
            "jobs"
        ].items():
            yield pytest.param(job, id=f"{path.stem}-{name}")


# What a job may write, and no other job: the branch of the site, and a token for the index of packages.
WRITES = {
    ("test", "pages"): {"contents": "write"},
    ("pages", "publish"): {"contents": "write"},
    ("release", "publish"): {"id-token": "write"},
}
PINNED = re.compile(
    r"(?P<action>[\w-]+/[\w-]+)@(?P<commit>[0-9a-f]{40}) # v[\d.]+|\./\.github/workflows/\w+\.yml"
)


@pytest.mark.parametrize("path", WORKFLOWS, ids=[path.stem for path in WORKFLOWS])
def test_workflow_asks_for_least(path):
    workflow = yaml.safe_load(path.read_text(encoding="utf8"))
    # YAML reads the key `on` as true.
    assert {"name", True, "permissions", "jobs"} <= set(workflow)
    assert workflow["permissions"] in ({}, {"contents": "read"})
    for name, job in workflow["jobs"].items():
        assert job.get("permissions") == WRITES.get((path.stem, name)), name


def test_each_action_is_one_commit():
    """A tag can be moved to other code; a commit cannot."""
    used = [
        line.partition("uses: ")[2]
        for path in WORKFLOWS
        for line in read(path).splitlines()
        if "uses: " in line
    ]
    matches = [PINNED.fullmatch(action) for action in used]
    assert (
        used
        and [action for action, match in zip(used, matches, strict=True) if not match]
        == []
    )
    assert len({match["action"] for match in matches}) == len(
        {match["commit"] for match in matches}
    )


def test_the_site_is_published_once_everything_has_passed():
    jobs = yaml.safe_load(read(".github/workflows/test.yml"))["jobs"]
    assert (
        set(jobs["pages"]["needs"]) == set(jobs) - {"pages"}
        and jobs["pages"]["if"] == "github.event_name == 'push'"
    )
    commands = [step.get("run", "") for step in jobs["book"]["steps"]]
    assert [
        "make book",
        "make test WHOLE=1",
        "make browser",
        "make notebooks",
    ] == commands[2:6]
    publishing = yaml.safe_load(read(".github/workflows/pages.yml"))
    assert list(publishing[True]) == ["workflow_call"] and "make" not in read(
        ".github/workflows/pages.yml"
    )


@pytest.mark.parametrize("job", list(jobs()))
def test_job(job):
    if "uses" in job:
        assert (ROOT / job["uses"]).is_file()
        return
    assert (
        job["runs-on"] in ("ubuntu-latest", "${{ matrix.system }}")
        and job["timeout-minutes"] <= 90
    )
    for step in job["steps"]:
        assert ("uses" in step) != ("run" in step), step
        if step.get("uses", "").startswith("actions/checkout"):
            assert step["with"] == {"persist-credentials": False}
        script = re.sub(r"\$\{\{.*?\}\}", "x", step.get("run", ""))
        assert (
            subprocess.run(
                ["bash", "-n", "-c", script], capture_output=True, text=True
            ).stderr
            == ""
        )
        assert [
            path
            for path in re.findall(r"tests/[\w./]+", script)
            if not (ROOT / path).exists()
        ] == []


def programs():
    """What the steps of workflows give Python to run."""
    for path in WORKFLOWS:
        for job in yaml.safe_load(path.read_text(encoding="utf8"))["jobs"].values():
            for step in job.get("steps", ()):
                yield from re.findall(
                    r"python [^\n]*<<'END'\n(.*?)\nEND", step.get("run", ""), re.S
                )


@pytest.mark.parametrize("program", list(programs()))
def test_programs_in_workflows_run(program):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


# Pins


def pins():
    """{name: version} of requirements.txt, all of them exact."""
    lines = [
        line.split("#")[0].strip() for line in read("requirements.txt").split("\n")
    ]
    requirements = [Requirement(line) for line in lines if line]
    assert [
        str(requirement)
        for requirement in requirements
        if not re.fullmatch(r"==[\w.!+]+", str(requirement.specifier))
    ] == []
    return {
        requirement.name.lower(): str(requirement.specifier).removeprefix("==")
        for requirement in requirements
    }


# Named by an extra that neither the book nor the checks install, with its one version there.
PINNED_BY_EXTRA = {"liger-kernel"}


def test_pins_satisfy_the_ranges():
    ranges = [
        *PROJECT["build-system"]["requires"],
        *PROJECT["project"]["dependencies"],
        *sum(EXTRAS.values(), []),
    ]
    pinned = pins()
    for requirement in map(Requirement, ranges):
        if requirement.name in PINNED_BY_EXTRA:
            assert (
                re.fullmatch(r"==[\w.]+", str(requirement.specifier))
                and requirement.name not in pinned
            )
        elif requirement.name != "normgrad":
            assert requirement.specifier.contains(pinned[requirement.name.lower()]), (
                str(requirement)
            )


# Modules that come with something that is declared, which cannot do without them.
BROUGHT = {
    "docutils": "sphinx",
    "functorch": "torch",
    "llvmlite": "numba",
    "mpmath": "sympy",
}
BROUGHT |= {"matplotlib_inline": "myst-nb", "nbformat": "myst-nb", "yaml": "pyyaml"}


def imported_at_once(path):
    """The outer names of what a file imports when it is imported itself; what its functions import may be missing."""
    for node in ast.parse(path.read_text(encoding="utf8")).body:
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module.partition(".")[0]


def test_what_is_imported_is_declared():
    """Where an environment is made from the extras, a test that imports more cannot even be collected."""
    lines = [*PROJECT["project"]["dependencies"], *sum(EXTRAS.values(), [])]
    declared = {Requirement(line).name.replace("-", "_") for line in lines}
    files = [
        path
        for folder in ("src", "book", "tests", "tools")
        for path in (ROOT / folder).rglob("*.py")
    ]
    own = {name for path in files for name in (path.stem, path.parent.name)}
    imported = (
        {name for path in files for name in imported_at_once(path)}
        - own
        - sys.stdlib_module_names
    )
    assert (
        sorted(
            name
            for name in imported
            if BROUGHT.get(name, name).replace("-", "_") not in declared
        )
        == []
    )


def test_the_triton_matrix_begins_with_the_lowest_and_has_the_pin():
    lowest, pinned, _ = triton_matrix.versions()
    (triton,) = (
        requirement
        for requirement in map(Requirement, EXTRAS["triton"])
        if requirement.name == "triton"
    )
    assert (
        str(triton.specifier) == f">={lowest.removesuffix('.0')}"
        and pinned == pins()["triton"]
    )


# What no file holds


@pytest.mark.parametrize("pattern", [MACHINE, REGISTRIES, UNFINISHED])
def test_no_file_holds(pattern):
    """Paths of a machine, addresses of package registries, and what is left for later."""
    assert lines_with(pattern) == []


@pytest.mark.parametrize("path", TESTS, ids=relative)
def test_tests_need_no_network(path):
    imported = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf8"))):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            imported |= {
                node.module,
                *(f"{node.module}.{alias.name}" for alias in node.names),
            }
    assert not imported & NETWORK


# House rules of the code


def public(tree):
    """Public functions and classes of a module, and their public methods; an autograd.Function's are torch's hooks.

    What is marked as an overload is one more signature of a function, which has the docstring.
    """
    for node in tree.body:
        if isinstance(
            node, (ast.FunctionDef, ast.ClassDef)
        ) and not node.name.startswith("_"):
            if "overload" in map(ast.unparse, node.decorator_list):
                continue
            yield node
            if isinstance(node, ast.ClassDef) and "torch.autograd.Function" not in map(
                ast.unparse, node.bases
            ):
                yield from public(node)


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_public_names_have_docstrings(path):
    tree = ast.parse(path.read_text(encoding="utf8"))
    bare = [node.name for node in public(tree) if not ast.get_docstring(node)]
    assert bare == [] and (ast.get_docstring(tree) or not tree.body)


def test_no_loss_is_a_plain_sum():
    """The gradient of the sum of a normalized row is zero, so a test with that loss passes whatever is wrong."""
    vacuous = re.compile(r"\.sum\(\)\.backward")
    assert [line for line in lines_with(vacuous) if line.startswith("tests/")] == []


def chosen_tolerances(tree):
    """Tolerances that are given as numbers, whether as arguments or as defaults."""
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg in (
            "atol",
            "rtol",
            "abs_tol",
            "rel_tol",
        ):
            value = node.value
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("approx"):
            value = ast.Tuple(
                [*node.args[1:], *(keyword.value for keyword in node.keywords)]
            )
        else:
            continue
        numbers = [
            part
            for part in ast.walk(value)
            if isinstance(part, ast.Constant) and part.value
        ]
        if numbers and not any(isinstance(part, ast.Name) for part in ast.walk(value)):
            yield f"line {node.lineno}: {ast.unparse(node)}"


@pytest.mark.parametrize("path", [*SOURCES, *TESTS], ids=relative)
def test_tolerances_are_computed(path):
    if relative(path) != "src/normgrad/checks/tolerance.py":
        assert list(chosen_tolerances(ast.parse(path.read_text(encoding="utf8")))) == []
