#!/usr/bin/python3
"""Writes copies of sources in which every small mistake can be made by its number at run time.

schemata.py --root SOURCES --out FOLDER [--without FILE] [--first N] UNIT.cc -- [COMPILER'S FLAGS]

A unit is a file that the compiler is given; it may include others, as joined sources do. Of those
in core/ and real_net/ a copy goes to FOLDER, with calls of schemata.h in it; FOLDER/NAME.json lists
the mistakes: number, file, line, kind, text. FILE names mistakes that do not compile, a line
"FILE:LINE" each.
"""
import argparse
import json
import pathlib
import re
import sys

from clang import cindex
from clang.cindex import CursorKind as K
from clang.cindex import TypeKind as T

INTEGERS = {T.INT, T.UINT, T.LONG, T.ULONG, T.LONGLONG, T.ULONGLONG, T.SHORT, T.USHORT,
            T.UCHAR, T.SCHAR, T.CHAR_S}
COMPARISONS = {"<", "<=", ">", ">="}
# Texts for people, marks for tests and what the library's own mutants switch: no promise.
NOT_PROMISED = re.compile(r"^(REHEARSAL_|static_cast<void>|\(void\))|\bmark\(|\btrace\(\)|\btrace_"
                          r"|\bon_event\(|mutants|Mutant::|\bout\(?\)? <<|spdlog|\blog\("
                          r"|\.reserve\(")
FOR_PEOPLE = re.compile(r"^(describe|debug_info|check_invariants|to_string|operator<<|.*_text|"
                        r"text_of|in_words|explain)")
# What only the oracles and the tests ask: a wrong count blinds them, and breaks no promise.
FOR_ORACLES = re.compile(r"^(census|(shared_owner|handle|pending_user|early_cancel|loose|"
                         r"send_function)_count)$")
# A statement that sets one field, from what nothing else is called for.
SETS_FIELD = re.compile(r"(?P<field>[\w.>-]+?)(?: = (?:Duration\(|static_cast<\w+>\()?[^()]*\)?"
                        r"|(?:\.|->)(?P<name>set_\w+)\(.*\));?", re.S)
FUNCTIONS = {K.FUNCTION_DECL, K.CXX_METHOD, K.CONSTRUCTOR, K.DESTRUCTOR, K.FUNCTION_TEMPLATE,
             K.CONVERSION_FUNCTION}


class Source:
    """One file: its text, the insertions, and what is wrong with it by number."""

    def __init__(self, path, name, left_out):
        self.path, self.name, self.left_out = path, name, left_out
        self.bytes = path.read_bytes()
        self.inserted = []  # (offset, order, text)
        self.mistakes = []

    def text(self, start, end):
        return self.bytes[start:end].decode()

    def line(self, offset):
        return self.bytes.count(b"\n", 0, offset) + 1

    def wrap(self, start, end, before, after):
        # At one place the inner of two ends first, and the outer begins first.
        self.inserted.append((start, 1, -end, before))
        self.inserted.append((end, 0, -start, after))

    def written(self):
        pieces, last = [], 0
        for offset, _, _, text in sorted(self.inserted, key=lambda one: one[:3]):
            pieces += [self.bytes[last:offset], text.encode()]
            last = offset
        return b"".join(pieces + [self.bytes[last:]])


class Schemata:
    def __init__(self, options):
        self.options = options
        self.sources = {}
        self.next = options.first
        self.mistakes = []
        self.left_out = set()
        self.guards = set()  # of what breaks no promise: file, start and end
        if options.without and pathlib.Path(options.without).exists():
            self.left_out = set(pathlib.Path(options.without).read_text().split())

    def source_of(self, cursor):
        file = cursor.location.file
        if file is None:
            return None
        if file.name not in self.sources:
            path = pathlib.Path(file.name).resolve()
            root = self.options.root.resolve()
            name = str(path.relative_to(root)) if path.is_relative_to(root) else ""
            ours = name.startswith(("core/", "real_net/")) and name.endswith(".cc")
            self.sources[file.name] = Source(path, name, self.left_out) if ours else None
        return self.sources[file.name]

    def numbers(self, source, offset, kinds, text):
        """The first of the numbers of these mistakes; none where such do not compile."""
        line = source.line(offset)
        if f"{source.name}:{line}" in self.left_out:
            return None
        first = self.next
        for kind in kinds:
            self.mistakes.append({"number": self.next, "file": source.name, "line": line,
                                  "kind": kind, "text": " ".join(text.split())[:120]})
            self.next += 1
        return first

    # ---- what is found ----

    def unit(self, unit, flags):
        parsed = cindex.Index.create().parse(unit, args=flags)
        errors = [one for one in parsed.diagnostics if one.severity >= 3]
        if errors:
            sys.exit(f"{unit}: {errors[0]}")
        for cursor in parsed.cursor.get_children():
            source = self.source_of(cursor)
            if source is not None:
                self.declarations(cursor, source)

    def declarations(self, cursor, source):
        if cursor.kind in FUNCTIONS:
            return self.function(cursor, source)
        if cursor.kind in (K.NAMESPACE, K.CLASS_DECL, K.STRUCT_DECL, K.CLASS_TEMPLATE,
                           K.UNEXPOSED_DECL, K.LINKAGE_SPEC):
            for child in cursor.get_children():
                self.declarations(child, source)

    def function(self, cursor, source):
        body = next((child for child in cursor.get_children()
                     if child.kind == K.COMPOUND_STMT), None)
        if body is None or FOR_PEOPLE.match(cursor.spelling) or \
                FOR_ORACLES.match(cursor.spelling):
            return
        head = source.text(cursor.extent.start.offset, body.extent.start.offset)
        if re.search(r"\b(constexpr|consteval|noreturn)\b", head):
            return
        self.early_return(cursor, body, head, source)
        self.walk(body, source, cursor)

    def early_return(self, cursor, body, head, source):
        if cursor.kind in (K.CONSTRUCTOR, K.DESTRUCTOR, K.FUNCTION_TEMPLATE) or \
                body.extent.end.offset - body.extent.start.offset < 4:
            return
        result = cursor.result_type.get_canonical()
        if result.kind in (T.LVALUEREFERENCE, T.RVALUEREFERENCE, T.DEPENDENT):
            return
        values = {T.VOID: [""], T.BOOL: ["false", "true"]}.get(result.kind, ["{}"])
        start = body.extent.start.offset + 1
        for value in values:
            number = self.numbers(source, start, ["early return " + value], cursor.spelling)
            if number is not None:
                source.inserted.append(
                    (start, 1, -number, f" if (::rehearsal::schemata::on({number})) "
                                        f"return {value};"))

    def walk(self, cursor, source, function):
        kind = cursor.kind
        if kind == K.COMPOUND_STMT:
            self.compound(cursor, source)
        elif kind in (K.IF_STMT, K.WHILE_STMT, K.FOR_STMT, K.CXX_FOR_RANGE_STMT):
            self.controlled(cursor, source)
        elif kind == K.CONDITIONAL_OPERATOR:
            self.condition(next(cursor.get_children()), source)
        elif kind == K.BINARY_OPERATOR:
            self.binary(cursor, source)
        elif kind == K.RETURN_STMT:
            for child in cursor.get_children():
                if child.type.get_canonical().kind == T.BOOL:
                    self.condition(child, source)
        elif kind == K.CALL_EXPR:
            self.arguments(cursor, source)
        for child in cursor.get_children():
            if child.kind == K.CASE_STMT:
                inner = list(child.get_children())
                for one in inner[1:]:
                    self.walk(one, source, function)
                continue
            if child.kind == K.VAR_DECL and "constexpr" in self.text_of(child, source):
                continue
            if child.kind == K.DECL_STMT and "constexpr" in self.text_of(child, source)[:40]:
                continue
            if child.kind in (K.TEMPLATE_REF, K.TYPE_REF, K.NAMESPACE_REF):
                continue
            if child.kind == K.INTEGER_LITERAL:
                if kind not in (K.DECL_REF_EXPR, K.MEMBER_REF_EXPR, K.TYPE_REF):
                    self.literal(child, source)
                continue
            if child.kind == K.DECL_REF_EXPR:
                self.enumerator(child, source)
            self.walk(child, source, function)

    # ---- places ----

    def text_of(self, cursor, source):
        return source.text(cursor.extent.start.offset, cursor.extent.end.offset)

    def is_here(self, cursor, source):
        file = cursor.extent.start.file
        end = cursor.extent.end.file
        return (file is not None and end is not None and file.name == end.name and
                self.sources.get(file.name) is source and
                cursor.extent.start.offset < cursor.extent.end.offset)

    def is_plain(self, cursor, source):
        return self.is_here(cursor, source) and \
            not NOT_PROMISED.search(self.text_of(cursor, source))

    def compound(self, cursor, source):
        before = None
        for child in cursor.get_children():
            end = self.statement(child, source) if child.kind.is_expression() else None
            if end is None:
                before = None
                continue
            if before is not None and not self.are_checks(before[0], child, source) and \
                    not self.are_fields(before[0], child, source):
                self.exchange(before, (child, end), source)
                before = None
            else:
                before = (child, end)

    def are_checks(self, first, second, source):
        """Of which each refuses a message: in another order they refuse the same ones."""
        return all(self.text_of(one, source).startswith("demand(") for one in (first, second))

    def are_fields(self, first, second, source):
        """Of which each sets another field, and reads nothing of the other's: their order is not
        to be seen."""
        texts = [self.text_of(one, source) for one in (first, second)]
        sets = [SETS_FIELD.fullmatch(text) for text in texts]
        if not all(sets) or any(re.search(r"std::(move|exchange)|\+\+|--", text)
                                for text in texts):
            return False
        names = [one["name"] or one["field"] for one in sets]
        return names[0] not in texts[1] and names[1] not in texts[0]

    def controlled(self, cursor, source):
        children = list(cursor.get_children())
        start = cursor.extent.start.offset
        inside = self.parentheses(source, start, cursor.extent.end.offset)
        if inside is None:
            return
        is_constant = source.text(start, inside[0]).find("constexpr") >= 0
        if cursor.kind == K.FOR_STMT:
            inside = self.second_of_three(source, inside)
        declares = inside is not None and b";" not in source.bytes[inside[0]:inside[1]] and any(
            child.kind in (K.VAR_DECL, K.DECL_STMT) and
            inside[0] <= child.extent.start.offset < inside[1] for child in children)
        if cursor.kind != K.CXX_FOR_RANGE_STMT and inside is not None and not is_constant and \
                not declares:
            conditions = [child for child in children if child.kind.is_expression() and
                          inside[0] <= child.extent.start.offset and
                          child.extent.end.offset <= inside[1]]
            if conditions:
                self.leave_out_guards(cursor, conditions[-1], source)
                self.condition(conditions[-1], source)
        for child in children:
            if inside is not None and child.extent.start.offset > inside[1] and \
                    child.kind.is_expression():
                self.statement(child, source)

    def leave_out_guards(self, cursor, condition, source):
        """Of an `if` whose only statement is a trace, a mark and the like: what decides about that
        alone, the whole condition and its last part."""
        rest = [child for child in cursor.get_children()
                if child.extent.start.offset >= condition.extent.end.offset]
        if cursor.kind != K.IF_STMT or len(rest) != 1 or not rest[0].kind.is_expression() or \
                self.is_plain(rest[0], source):
            return
        while True:
            condition = self.base(condition)
            self.guards.add((source.name, condition.extent.start.offset,
                             condition.extent.end.offset))
            if condition.kind != K.BINARY_OPERATOR or \
                    self.operator_of(condition, source) not in ("&&", "||"):
                return
            condition = list(condition.get_children())[1]

    def is_guard(self, cursor, source):
        return (source.name, cursor.extent.start.offset, cursor.extent.end.offset) in self.guards

    def parentheses(self, source, start, end):
        """What stands between the first parenthesis and its partner."""
        depth, first = 0, None
        for offset in range(start, end):
            byte = source.bytes[offset:offset + 1]
            if byte == b"(":
                depth += 1
                first = offset + 1 if first is None else first
            elif byte == b")":
                depth -= 1
                if depth == 0:
                    return first, offset
        return None

    def second_of_three(self, source, inside):
        depth, ends = 0, []
        for offset in range(*inside):
            byte = source.bytes[offset:offset + 1]
            depth += (byte in (b"(", b"[", b"{")) - (byte in (b")", b"]", b"}"))
            if byte == b";" and depth == 0:
                ends.append(offset)
        return (ends[0] + 1, ends[1]) if len(ends) == 2 else None

    # ---- mistakes ----

    def statement(self, cursor, source):
        """Leaves it out. Returns its end, behind the semicolon, or nothing."""
        if not self.is_plain(cursor, source):
            return None
        start, end = cursor.extent.start.offset, cursor.extent.end.offset
        rest = source.bytes[end:end + 80]
        gap = len(rest) - len(rest.lstrip())
        if rest[gap:gap + 1] != b";":
            return None
        end += gap + 1
        number = self.numbers(source, start, ["left out"], source.text(start, end))
        if number is None:
            return None
        source.wrap(start, end, f"{{ if (!::rehearsal::schemata::on({number})) {{ ", " } }")
        return end

    def exchange(self, first, second, source):
        start, middle = first[0].extent.start.offset, second[0].extent.start.offset
        number = self.numbers(source, start, ["exchanged with the next"],
                              source.text(start, second[1]))
        if number is None:
            return
        source.wrap(start, second[1],
                    f"for (int turn_ = 0; turn_ < 2; ++turn_) "
                    f"if ((turn_ == 0) != ::rehearsal::schemata::on({number})) {{ ", " }")
        # Behind all that ends with the first one, before all that begins with the second.
        source.inserted.append((first[1], 0, 1, " } else { "))

    def condition(self, cursor, source):
        if not self.is_plain(cursor, source):
            return
        text = self.text_of(cursor, source)
        if text in ("true", "false") or self.is_guard(cursor, source):
            return
        number = self.numbers(source, cursor.extent.start.offset,
                              ["negated", "held true", "held false"], text)
        if number is not None:
            source.wrap(cursor.extent.start.offset, cursor.extent.end.offset,
                        f"::rehearsal::schemata::held({number}, static_cast<bool>(", "))")

    def binary(self, cursor, source):
        sides = list(cursor.get_children())
        if len(sides) != 2 or not self.is_plain(cursor, source) or \
                not all(self.is_here(side, source) for side in sides):
            return
        ends = sides[0].extent.end.offset, sides[1].extent.start.offset
        operator = source.text(*ends).strip()
        if operator in ("&&", "||"):
            for side in sides:
                if side.kind != K.BINARY_OPERATOR or \
                        not self.operator_of(side, source) in ("&&", "||"):
                    self.condition(side, source)
        if operator in COMPARISONS and not self.is_guard(cursor, source) and \
                all(side.type.get_canonical().kind in INTEGERS for side in sides):
            number = self.numbers(source, ends[0], ["bound higher", "bound lower"],
                                  self.text_of(cursor, source))
            if number is None:
                return
            start, end = cursor.extent.start.offset, cursor.extent.end.offset
            equal = "true" if len(operator) == 2 else "false"
            source.wrap(start, end, f"::rehearsal::schemata::compared<'{operator[0]}', {equal}>"
                                    f"({number}, ", ")")
            # The operator becomes a comma.
            at = source.bytes.index(operator.encode(), ends[0])
            source.inserted.append((at, 1, 0, ", /*"))
            source.inserted.append((at + len(operator), 0, 0, "*/"))

    def operator_of(self, cursor, source):
        sides = list(cursor.get_children())
        if len(sides) != 2:
            return ""
        return source.text(sides[0].extent.end.offset, sides[1].extent.start.offset).strip()

    def literal(self, cursor, source):
        if not self.is_here(cursor, source):
            return
        text = self.text_of(cursor, source)
        if not re.fullmatch(r"[0-9][0-9'a-fA-FxuUlL]*", text):
            return
        number = self.numbers(source, cursor.extent.start.offset, ["one more", "one less"],
                              self.around(cursor, source))
        if number is not None:
            source.wrap(cursor.extent.start.offset, cursor.extent.end.offset,
                        f"::rehearsal::schemata::moved({number}, ", ")")

    def around(self, cursor, source):
        start = source.bytes.rfind(b"\n", 0, cursor.extent.start.offset) + 1
        end = source.bytes.find(b"\n", cursor.extent.end.offset)
        return source.text(start, end)

    def enumerator(self, cursor, source):
        named = cursor.referenced
        if named is None or named.kind != K.ENUM_CONSTANT_DECL or \
                not self.is_plain(cursor, source):
            return
        text = self.text_of(cursor, source)
        if "EventKind::" in text or not text.endswith(named.spelling):
            return
        others = [one.spelling for one in named.semantic_parent.get_children()
                  if one.kind == K.ENUM_CONSTANT_DECL]
        other = others[(others.index(named.spelling) + 1) % len(others)]
        if other == named.spelling:
            return
        wrong = text[:-len(named.spelling)] + other
        number = self.numbers(source, cursor.extent.start.offset, [f"{other} in its place"],
                              self.around(cursor, source))
        if number is not None:
            source.wrap(cursor.extent.start.offset, cursor.extent.end.offset,
                        f"::rehearsal::schemata::exchanged({number}, ", f", {wrong})")

    def arguments(self, cursor, source):
        if cursor.spelling.startswith("operator"):
            return  # `==` and its like mean the same either way.
        given = list(cursor.get_arguments())
        for first, second in zip(given, given[1:]):
            if first is None or second is None:
                continue
            named = (K.DECL_REF_EXPR, K.MEMBER_REF_EXPR)
            if not all(self.is_plain(one, source) and self.base(one).kind in named
                       for one in (first, second)):
                continue
            kinds = [one.type.get_canonical() for one in (first, second)]
            texts = [self.text_of(one, source) for one in (first, second)]
            if kinds[0].spelling != kinds[1].spelling or texts[0] == texts[1] or \
                    not (kinds[0].kind in INTEGERS or kinds[0].kind == T.RECORD):
                continue
            start = first.extent.start.offset
            number = self.numbers(source, start, ["arguments exchanged"],
                                  source.text(start, second.extent.end.offset))
            if number is None:
                continue
            for one, other in ((first, texts[1]), (second, texts[0])):
                source.wrap(one.extent.start.offset, one.extent.end.offset,
                            f"(::rehearsal::schemata::on({number}) ? {other} : ", ")")
            return  # Not twice in one call.

    def base(self, cursor):
        while cursor.kind == K.UNEXPOSED_EXPR:
            inner = list(cursor.get_children())
            if len(inner) != 1:
                break
            cursor = inner[0]
        return cursor


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--without")
    parser.add_argument("--first", type=int, default=1, help="the first number")
    parser.add_argument("unit")
    parser.add_argument("flags", nargs="*")
    options = parser.parse_args()
    schemata = Schemata(options)
    schemata.unit(options.unit, options.flags)
    for source in schemata.sources.values():
        if source is not None:
            path = options.out / source.name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(source.written())
    name = pathlib.Path(options.unit).stem
    (options.out / f"{name}.json").write_text(json.dumps(schemata.mistakes, indent=1))
    print(f"{name}: {len(schemata.mistakes)} mistakes in "
          f"{sum(one is not None for one in schemata.sources.values())} files")


if __name__ == "__main__":
    main()
