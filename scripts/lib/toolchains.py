#!/usr/bin/python3
"""Installs toolchains: pinned packages of the Python package index, in this user's cache of dependencies (docs/installing.md).

usage: toolchains.py install [--quiet] NAME...   install what is missing ("all": every one)
       toolchains.py folders                     print what there is: "NAME FOLDER VERSION PACKAGE... | TEXT", one a line

Called by `layerfarm toolchains install` and by scripts/setup; CMake asks it for the names. Only Python's standard library is
used. dependencies.lock, beside this file or one folder up, is the only place with versions and checksums.

A toolchain is a folder of packages beside the others, python-NAME-<id>/site-packages; python-<id> holds the interpreter and what
our own Python needs. The interpreter knows the folders of all of them, there or not yet, so that a toolchain which is installed
later changes nothing that is in use. Folders are made under another name and then renamed: what has its name is whole.
"""

import fcntl
import hashlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
PYTHON = (3, 11)  # the wheels of the lock are for it
BASE = "python"
TEMPORARY = ".toolchains."
# What the user may have set for their own installations and what would lead ours astray.
FOREIGN_SETTINGS = ("PIP_TARGET", "PIP_USER", "PIP_PREFIX", "PIP_ROOT", "PIP_REQUIRE_VIRTUALENV", "PIP_NO_BINARY", "PIP_CONSTRAINT")


class Failed(Exception):
    """What went wrong and what to do, for people."""


# --- the lock --------------------------------------------------------------------------------------------------------


class Package:
    def __init__(self, name, version, sha256, line):
        self.name, self.version, self.sha256, self.line = name, version, sha256, line

    @property
    def import_name(self):
        """As the folder of its record is called."""
        return re.sub(r"[-_.]+", "_", self.name)


class Part:
    """One folder of the cache: a toolchain, or the interpreter with what all of them need."""

    def __init__(self, name, packages, folder, version="", text=""):
        self.name, self.packages, self.folder, self.version, self.text = name, packages, folder, version, text


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def read_lock(text, origin="dependencies.lock"):
    """The base and the toolchains, in the order of the lock."""
    packages, toolchains = {}, []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split(" ")
        if words[0] == "pypi":
            if len(words) != 5 or not re.fullmatch(r"[0-9a-f]{64}", words[4]):
                raise Failed(f"{origin}, line {number}: expected 'pypi GROUP NAME VERSION SHA256'")
            packages.setdefault(words[1], []).append(Package(*words[2:], line))
        elif words[0] == "toolchain":
            if len(words) < 4 or not re.fullmatch(r"[a-z][a-z0-9]*", words[1]) or re.search(r'[;|"\\]', line):
                raise Failed(f"{origin}, line {number}: expected 'toolchain NAME PACKAGE TEXT', without any of ; | \" \\")
            toolchains.append((number, words[1], words[2], " ".join(words[3:])))
    parts = []
    for number, name, leading, text_of_it in toolchains:
        own = packages.get(name, [])
        version = next((package.version for package in own if package.name == leading), None)
        if version is None:
            raise Failed(f"{origin}, line {number}: no line 'pypi {name} {leading} ...' says its version")
        parts.append(Part(name, own, f"python-{name}-" + digest("".join(p.line + "\n" for p in own)), version, text_of_it))
    own = packages.get(BASE)
    if not own:
        raise Failed(f"{origin}: no line 'pypi {BASE} ...'")
    # The interpreter names the toolchains' folders, so it is another one when they are others.
    lines = [package.line for package in own] + [part.folder for part in parts]
    return Part(BASE, own, "python-" + digest("".join(line + "\n" for line in lines))), parts


def lock_file():
    for folder in (HERE, HERE.parent):
        if (folder / "dependencies.lock").is_file():
            return folder / "dependencies.lock"
    raise Failed(f"dependencies.lock is missing beside {HERE}: install layerfarm again")


# --- the cache -------------------------------------------------------------------------------------------------------


def cache_folder():
    """As base::dependencies_folder() and scripts/lib/deps.sh have it."""
    own, cache, home = (os.environ.get(name) for name in ("LAYERFARM_DEPS_DIR", "XDG_CACHE_HOME", "HOME"))
    if own:
        return pathlib.Path(own).absolute()
    if cache:
        return pathlib.Path(cache).absolute() / "layerfarm-deps"
    if home:
        return pathlib.Path(home).absolute() / ".cache" / "layerfarm-deps"
    raise Failed("no place for toolchains: set HOME or LAYERFARM_DEPS_DIR")


def is_complete(folder):
    return (folder / ".complete").exists()


def end_of(log):
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip() and "[notice]" not in line]
    return "\n".join("  " + line for line in lines[-6:])


LITTLE_ROOM = 64 << 20


def explanation(text, cache):
    """What the words of pip or the system mean for the user; None where they say it best themselves."""
    full = f"no room left in {cache}; make room there, or set LAYERFARM_DEPS_DIR to a folder on another disk"
    if "No space left on device" in text or "Disk quota exceeded" in text:
        return full
    if "DO NOT MATCH THE HASHES" in text:
        return "what the package index gave is not what the lock names: nothing was installed"
    if re.search(r"NewConnectionError|ConnectionError|ConnectTimeout|ReadTimeout|Temporary failure in name resolution|SSLError|"
                 r"ProxyError|Could not find a version|No matching distribution", text):
        return ("the Python package index cannot be reached, or lacks the package; see to the network and to pip's own settings "
                "(pip config list), or name a folder with the wheels: PIP_NO_INDEX=1 PIP_FIND_LINKS=FOLDER")
    # Python's venv does not say why it failed.
    if cache.is_dir() and shutil.disk_usage(cache).free < LITTLE_ROOM:
        return full
    return None


class Installer:
    def __init__(self, cache, base, parts, say):
        self.cache, self.base, self.parts, self.say = cache, base, parts, say

    def install(self, wanted):
        """Installs what of it is missing; whether anything was."""
        missing = [part for part in [self.base, *wanted] if not is_complete(self.cache / part.folder)]
        if not missing:
            return False
        check_python()
        try:
            self.cache.mkdir(parents=True, exist_ok=True)
            with open(self.cache / ".toolchains.lock", "w", encoding="utf-8") as lock:
                self.wait_for(lock)
                for left in self.cache.glob(TEMPORARY + "*"):
                    if left.is_dir():  # of an installation that was killed: nobody else can be here
                        shutil.rmtree(left, ignore_errors=True)
                for part in missing:
                    if not is_complete(self.cache / part.folder):  # another one may have done it while we waited
                        self.make(part)
                self.check_together()
        except OSError as error:
            raise Failed(explanation(str(error), self.cache) or f"cannot write to {self.cache}: {error}") from error
        return True

    def wait_for(self, lock):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.say(f"another installation is at work in {self.cache}; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)

    def make(self, part):
        names = ", ".join(f"{package.name} {package.version}" for package in part.packages)
        self.say(f"{'Python environment' if part is self.base else part.name}: installing {names}")
        temporary = pathlib.Path(tempfile.mkdtemp(prefix=TEMPORARY, dir=self.cache))
        try:
            new = temporary / "new"
            if part is self.base:
                self.make_environment(new)
                target = new / "site-packages"
            else:
                target = new / "site-packages"
                target.mkdir(parents=True)
            self.pip_install(part, target, new if part is self.base else self.cache / self.base.folder, temporary)
            # Wrappers name the folder in which they were made; nothing uses them.
            shutil.rmtree(target / "bin", ignore_errors=True)
            for script in (new / "bin").glob("*"):
                if not script.name.startswith("python"):
                    script.unlink()
            (new / ".complete").touch()
            final = self.cache / part.folder
            shutil.rmtree(final, ignore_errors=True)  # without its mark: not ours, or half removed by somebody
            new.rename(final)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)

    def make_environment(self, new):
        self.run([sys.executable, "-I", "-m", "venv", new], new.parent, "the Python environment could not be made")
        packages = next((new / "lib").glob("python3.*")) / "site-packages"
        # A way to the packages that does not name the Python version, for programs that look for a vendor's library.
        (new / "site-packages").symlink_to(packages.relative_to(new))
        # Read by the interpreter as it starts; a line whose folder does not exist counts for nothing.
        up = "/".join([".."] * (len(packages.relative_to(new).parts) + 1))
        (packages / "toolchains.pth").write_text("".join(f"{up}/{part.folder}/site-packages\n" for part in self.parts))

    def check_together(self):
        """Each part is installed without its dependencies: that the lock names them all shows when all parts are there."""
        if all(is_complete(self.cache / part.folder) for part in self.parts):
            with tempfile.TemporaryDirectory(prefix=TEMPORARY, dir=self.cache) as temporary:
                self.run([self.cache / self.base.folder / "bin" / "python", "-I", "-m", "pip", "check"], pathlib.Path(temporary),
                         "the installed packages do not fit together")

    def pip_install(self, part, target, environment, temporary):
        # pip's own format, so that pip checks what the lock says.
        requirements = temporary / "requirements.txt"
        requirements.write_text("".join(f"{p.name}=={p.version} --hash=sha256:{p.sha256}\n" for p in part.packages))
        command = [environment / "bin" / "python", "-I", "-m", "pip", "install", "--no-cache-dir", "--disable-pip-version-check",
                   "--no-input", "--no-deps", "--require-hashes", "--only-binary", ":all:", "-r", requirements]
        if part is not self.base:
            command += ["--target", target]
        self.run(command, temporary, f"{part.name} could not be installed")

    def run(self, command, temporary, what):
        log = temporary / "log"
        environment = {name: value for name, value in os.environ.items() if name not in FOREIGN_SETTINGS}
        environment["TMPDIR"] = str(temporary)  # so that all of it is on one disk, and goes with the folder
        with open(log, "w", encoding="utf-8") as output:
            status = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, env=environment,
                                    check=False).returncode
        if status:
            said = end_of(log)
            reason = explanation(log.read_text(errors="replace"), self.cache)
            raise Failed(f"{what}: " + (reason or f"exit code {status}") + (f"\n{said}" if said else ""))


def check_python():
    version = sys.version_info[:2]
    if version != PYTHON or os.uname().machine != "x86_64":
        raise Failed(f"the toolchains are made for Python {PYTHON[0]}.{PYTHON[1]} on x86-64; {sys.executable} is Python "
                     f"{version[0]}.{version[1]} on {os.uname().machine}")
    from importlib import util

    if util.find_spec("ensurepip") is None or util.find_spec("venv") is None:
        raise Failed("Python's venv is missing: install the Debian package python3-venv")


# --- the command -----------------------------------------------------------------------------------------------------


def chosen(names, parts):
    known = {part.name: part for part in parts}
    wanted = list(known) if "all" in names else names
    for name in wanted:
        if name not in known:
            raise Failed(f"no toolchain '{name}'; there are: {', '.join(known)}, all")
    return [known[name] for name in dict.fromkeys(wanted)]


def main(arguments):
    quiet = "--quiet" in arguments
    words = [word for word in arguments if word != "--quiet"]
    say = lambda text: print(f"toolchains: {text}", flush=True)
    try:
        base, parts = read_lock(lock_file().read_text(encoding="utf-8"))
        if words == ["folders"]:
            for part in [base, *parts]:
                packages = " ".join(package.import_name for package in part.packages)
                print(f"{part.name} {part.folder} {part.version or '-'} {packages} | {part.text}")
            return 0
        if len(words) < 2 or words[0] != "install":
            print(__doc__.strip(), file=sys.stderr)
            return 2
        wanted = chosen(words[1:], parts)
        cache = cache_folder()
        anything = Installer(cache, base, parts, say).install(wanted)
        if anything or not quiet:
            names = ", ".join(f"{part.name} {part.version}" for part in wanted)
            say(f"{names}: " + ("installed in" if anything else "there already, in") + f" {cache}")
        return 0
    except Failed as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    # So that a break in the middle goes the way of an error: what was begun is removed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    signal.signal(signal.SIGHUP, lambda *_: sys.exit(129))
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
