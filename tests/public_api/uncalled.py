#!/usr/bin/python3
"""Names the public functions of core/api that no scenario calls.

uncalled.py [--build build/dev] [--jobs N] [--root FOLDER] [--reasons FILE]

Scenarios are what `rehearsal hunt` searches: a function that none of them calls is searched by
nobody. A function is public if a header of core/api declares it for those who write programs: not
in a namespace `detail`, not private, not in a header that only the library includes. In a template
whose arguments decide what is called, a name counts for every function that has it. What no
scenario can call, or cannot be seen to call, has its reason in uncalled.json. Exit status 1 if a
function is called by none and has no reason, or if a reason is not needed.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import shlex
import sys
import tempfile

from clang import cindex
from clang.cindex import AccessSpecifier
from clang.cindex import CursorKind as K

HERE = pathlib.Path(__file__).resolve().parent
API = "/core/api/"
FUNCTIONS = {K.FUNCTION_DECL, K.CXX_METHOD, K.CONSTRUCTOR, K.FUNCTION_TEMPLATE,
             K.CONVERSION_FUNCTION}
CLASSES = {K.CLASS_DECL, K.STRUCT_DECL, K.CLASS_TEMPLATE, K.CLASS_TEMPLATE_PARTIAL_SPECIALIZATION}
USES = {K.MEMBER_REF_EXPR, K.DECL_REF_EXPR, K.CALL_EXPR, K.OVERLOADED_DECL_REF, K.MEMBER_REF}
# By which the parts of the library know each other; a program names nothing of them.
OF_THE_LIBRARY = {
    "call_port.h", "caller.h", "checkpoint_parts.h", "deadline_id.h", "draft.h", "drafts.h",
    "gather.h", "gather_share.h", "leaf_gradients.h", "module_traits.h", "note.h",
    "optimizer_kind.h", "own_optimizer.h", "parcel.h", "pass_gate.h", "pipeline_seat.h",
    "published.h", "reference_port.h", "rref_handle.h", "served_module.h", "started_calls.h",
    "worker_port.h", "worker_state.h"}
# Made by the library, or by the language, wherever there is an object of the class.
UNNAMED = {"operator=", "operator<=>", "caller", "references", "shared_handle", "write", "read",
           "sign", "Iterator"}


def flags_of(command):
    """Those that say what a source means."""
    kept, words = [], iter(shlex.split(command))
    for word in words:
        if word in ("-isystem", "-include-pch"):
            kept += [word, next(words)]
        elif word in ("-MT", "-MF", "-mllvm", "-o"):
            next(words)
        elif word.startswith(("-D", "-I", "-O", "-std", "-f")):
            kept.append(word)
    return kept


def units_of(build, root):
    """The sources of the scenarios, joined or not, with their flags."""
    commands = json.loads((build / "compile_commands.json").read_text())
    units = {}
    for one in commands:
        file = pathlib.Path(one["directory"], one["file"]).resolve()
        folder = os.path.relpath(file, build)
        is_scenarios = folder.startswith("scenarios/") or \
            os.path.relpath(file, root).startswith("scenarios/")
        if is_scenarios and file.suffix == ".cc" and "cmake_pch" not in file.name:
            units[str(file)] = flags_of(one["command"])
    return units


def parse(file, flags, text=None):
    unsaved = [(file, text)] if text is not None else None
    parsed = cindex.Index.create().parse(file, args=flags, unsaved_files=unsaved)
    errors = [one for one in parsed.diagnostics if one.severity >= cindex.Diagnostic.Error]
    if errors:
        raise RuntimeError(f"{file}: {errors[0]}")
    return parsed.cursor


def place_of(cursor):
    """(header, line) of a declaration in core/api, else nothing."""
    file = cursor.location.file
    if file is None or API not in file.name:
        return None
    return os.path.basename(file.name), cursor.location.line


def is_hidden(cursor):
    """Whether it, or a class that it is in, is not public."""
    while cursor is not None and cursor.kind not in (K.NAMESPACE, K.TRANSLATION_UNIT):
        if cursor.access_specifier in (AccessSpecifier.PRIVATE, AccessSpecifier.PROTECTED):
            return True
        cursor = cursor.semantic_parent
    return False


def defined_elsewhere(cursor):
    """Of each method that is defined outside of its class its place there and in the class."""
    for child in cursor.get_children():
        if child.kind in (K.NAMESPACE, K.LINKAGE_SPEC, K.UNEXPOSED_DECL):
            yield from defined_elsewhere(child)
        elif child.kind in FUNCTIONS and place_of(child) and place_of(child.canonical):
            yield place_of(child), place_of(child.canonical)


def declared(cursor, scope=()):
    """Of each public function its place and name."""
    for child in cursor.get_children():
        if child.kind in (K.NAMESPACE, K.LINKAGE_SPEC, K.UNEXPOSED_DECL):
            if child.spelling != "detail":
                yield from declared(child, scope)
            continue
        place = place_of(child)
        if place is None or place[0] in OF_THE_LIBRARY or is_hidden(child):
            continue
        if child.kind in CLASSES and child.is_definition():
            yield from declared(child, (*scope, child.spelling))
        elif child.kind in FUNCTIONS and child.canonical == child:
            name = child.spelling.split("<")[0]
            if name not in UNNAMED and not child.is_default_method() and \
                    not child.is_deleted_method():
                yield place, "::".join((*scope, name))


def dependent_name(cursor):
    """The member that an expression names whose object's type is not known yet."""
    words = [token.spelling for token in cursor.get_tokens()]
    return next((word for word in reversed(words) if word.isidentifier()), "")


def called(cursor, places):
    """Adds the places of the functions that are named, and the names whose place is not known."""
    for child in cursor.get_children():
        if child.kind in USES:
            place = place_of(child.referenced) if child.referenced is not None else None
            if place is not None:
                places.add(place)
            elif child.referenced is None and child.kind == K.MEMBER_REF_EXPR:
                places.add(dependent_name(child))
        called(child, places)


def calls_of(file, flags):
    """What the scenarios' part of a unit calls, as `called` says it."""
    places = set()
    for child in parse(file, flags).get_children():
        source = child.location.file
        if source is not None and "/scenarios/" in os.path.abspath(source.name):
            called(child, places)
    return places


def public_functions(root, flags):
    """Two tables: of places to names, and of places outside of classes to those in them."""
    headers = sorted(path.name for path in (root / "core/api").glob("*.h"))
    text = "".join(f'#include "core/api/{header}"\n' for header in headers)
    with tempfile.TemporaryDirectory() as folder:
        unit = parse(str(pathlib.Path(folder, "all.cc")), flags, text)
        return dict(declared(unit)), dict(defined_elsewhere(unit))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--root", type=pathlib.Path, default=HERE.parent.parent)
    parser.add_argument("--build", type=pathlib.Path, help="default: build/dev of the root")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--reasons", type=pathlib.Path, default=HERE / "uncalled.json")
    options = parser.parse_args()
    root, reasons = options.root.resolve(), json.loads(options.reasons.read_text())
    build = (options.build or root / "build/dev").resolve()
    os.chdir(build)
    units = units_of(build, root)
    if not units:
        sys.exit(f"{build}: no scenario has been configured there")
    with concurrent.futures.ProcessPoolExecutor(options.jobs) as pool:
        functions = pool.submit(public_functions, root, max(units.values(), key=len))
        places = set().union(*pool.map(calls_of, units.keys(), units.values()))
    functions, elsewhere = functions.result()
    places |= {elsewhere[place] for place in places if place in elsewhere}
    missing = {name: place for place, name in functions.items()
               if place not in places and name.split("::")[-1] not in places}
    untold = {name: place for name, place in missing.items() if name not in reasons}
    for name, (header, line) in sorted(untold.items()):
        print(f"core/api/{header}:{line}: no scenario calls {name}")
    needless = sorted(reasons.keys() - missing.keys())
    for name in needless:
        print(f"uncalled.json: {name} needs no reason: it is called, or not there")
    print(f"{len(functions)} functions are public, {len(missing)} are called by no scenario, "
          f"of which {len(missing) - len(untold)} have a reason")
    sys.exit(1 if untold or needless else 0)


if __name__ == "__main__":
    main()
