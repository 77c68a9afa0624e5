#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR GPL-2.0
"""Is Documentation/netlink/specs/ringgate.yaml a good specification, and the same
family as uapi/ringgate/netlink.h and the module's tables? Speaks TAP.

usage: check_netlink.py [spec]
"""
import os
import re
import subprocess
import sys
import tempfile

import jsonschema
import yaml

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def obj(required, optional, **types):
    """A mapping with these keys and no other"""
    props = {k: {} for k in required + optional}
    props.update(types)
    return {"type": "object", "required": required, "properties": props,
            "additionalProperties": False}


def array(items, **more):
    return dict({"type": "array", "items": items, "minItems": 1}, **more)


STR = {"type": "string", "minLength": 1}
NAME = {"type": "string", "pattern": "^[a-z][a-z0-9-]*$"}
CNAME = {"type": "string", "pattern": "^(--)?[a-z][a-z0-9-]*$"}
UINT = {"type": "integer", "minimum": 0}
LIMIT = {"anyOf": [UINT, {"type": "string"}]}
ATTR_NAMES = array(NAME, uniqueItems=True)
# The rules of the kernel's genetlink specifications, as far as used here; in one
# point stricter: everything has to be described.
DO = obj([], ["request", "reply"],
         request=obj(["attributes"], [], attributes=ATTR_NAMES),
         reply=obj(["attributes"], [], attributes=ATTR_NAMES))
SCHEMA = obj(
    ["name", "protocol", "doc", "uapi-header", "definitions", "attribute-sets",
     "operations", "mcast-groups"],
    ["c-family-name", "c-version-name", "version", "max-by-define",
     "cmd-max-name", "cmd-cnt-name", "kernel-policy"],
    name=NAME, doc=STR, version=UINT,
    protocol={"enum": ["genetlink", "genetlink-c", "genetlink-legacy"]},
    **{
        "cmd-max-name": CNAME, "cmd-cnt-name": CNAME,
        "max-by-define": {"type": "boolean"},
        "kernel-policy": {"enum": ["per-op"]},
        "definitions": array(obj(
            ["type", "name", "doc"],
            ["value", "value-start", "entries", "header", "enum-name",
             "name-prefix"],
            name=NAME, doc=STR, type={"enum": ["const", "enum", "flags"]},
            value=UINT,
            entries=array({"anyOf": [NAME, obj(["name"], ["doc", "value"],
                                               name=NAME, doc=STR)]}))),
        "attribute-sets": array(obj(
            ["name", "attributes", "doc"],
            ["name-prefix", "enum-name", "attr-max-name", "attr-cnt-name",
             "subset-of"],
            name=NAME, doc=STR,
            attributes=array(obj(
                ["name"],
                ["type", "doc", "value", "enum", "nested-attributes", "multi-attr",
                 "checks", "display-hint"],
                name=NAME, doc=STR, value=UINT,
                type={"enum": ["unused", "pad", "flag", "binary", "uint", "sint",
                               "u8", "u16", "u32", "u64", "s32", "s64", "string",
                               "nest"]},
                checks=obj([], ["min", "max", "max-len", "min-len", "exact-len"],
                           **{k: LIMIT for k in ("min", "max", "max-len",
                                                 "min-len", "exact-len")}))))),
        "operations": obj(
            ["list"], ["enum-model", "enum-name", "name-prefix"],
            **{"enum-model": {"enum": ["unified"]},
               "list": array(obj(
                   ["name", "doc"],
                   ["value", "attribute-set", "flags", "do", "dump", "event",
                    "mcgrp"],
                   name=NAME, doc=STR, do=DO, dump=DO,
                   flags=array({"enum": ["admin-perm", "uns-admin-perm"]}),
                   event=obj(["attributes"], [], attributes=ATTR_NAMES)))}),
        "mcast-groups": obj(["list"], [], list=array(
            obj(["name"], ["c-define-name", "flags"], name=NAME,
                flags=array({"enum": ["admin-perm", "uns-admin-perm"]})))),
    })


def c_name(*parts):
    return "".join(parts).replace("-", "_").upper()


def numbered(items, start):
    """(item, value) with the values that are not written out counted on"""
    value = start
    for item in items:
        item = {"name": item} if isinstance(item, str) else item
        value = item.get("value", value)
        yield item, value
        value += 1


def rules(spec):
    """What a schema cannot say"""
    bad = []
    sets = {s["name"]: s for s in spec["attribute-sets"]}
    defs = {d["name"]: d for d in spec["definitions"]}
    groups = {g["name"] for g in spec["mcast-groups"]["list"]}
    for kind, items in (("definition", spec["definitions"]),
                        ("set", spec["attribute-sets"]),
                        ("operation", spec["operations"]["list"])):
        found = [i["name"] for i in items]
        bad += ["%s %s twice" % (kind, n) for n in set(found) if found.count(n) > 1]
    for s in sets.values():
        attrs = [a["name"] for a in s["attributes"]]
        bad += ["%s: %s twice" % (s["name"], n) for n in set(attrs)
                if attrs.count(n) > 1]
        if "subset-of" in s:
            whole = {a["name"] for a in
                     sets.get(s["subset-of"], {"attributes": []})["attributes"]}
            bad += ["%s: no %s in the whole" % (s["name"], n) for n in attrs
                    if n not in whole]
            bad += ["%s/%s: described twice" % (s["name"], a["name"])
                    for a in s["attributes"] if set(a) != {"name"}]
            continue
        if "name-prefix" not in s:
            bad.append(s["name"] + ": no prefix")
        for a in s["attributes"]:
            if "type" not in a:
                bad.append("%s/%s: no type" % (s["name"], a["name"]))
                continue
            where = "%s/%s" % (s["name"], a["name"])
            if a["type"] == "nest" and a.get("nested-attributes") not in sets:
                bad.append(where + ": nests an unknown set")
            if "enum" in a and defs.get(a["enum"], {}).get("type") not in ("enum",
                                                                          "flags"):
                bad.append(where + ": unknown enum")
            if a["type"] not in ("unused", "pad") and "doc" not in a:
                bad.append(where + ": not described")
            for limit in a.get("checks", {}).values():
                if isinstance(limit, str) and limit.split(" - ")[0] not in defs:
                    bad.append(where + ": unknown limit " + limit)
    used = set()
    for op in spec["operations"]["list"]:
        if op["name"] == "unspec":
            continue
        attrs = sets.get(op.get("attribute-set"))
        if not attrs:
            bad.append(op["name"] + ": unknown attribute set")
            continue
        known = {a["name"] for a in attrs["attributes"]
                 if a["type"] not in ("unused", "pad")}
        lists = [op[k][d]["attributes"] for k in ("do", "dump") if k in op
                 for d in op[k]] + ([op["event"]["attributes"]]
                                    if "event" in op else [])
        if not lists:
            bad.append(op["name"] + ": neither do, dump nor event")
        for names in lists:
            used |= {(attrs["name"], n) for n in names}
            bad += ["%s: unknown attribute %s" % (op["name"], n)
                    for n in names if n not in known]
        if ("event" in op) != ("mcgrp" in op) or \
           op.get("mcgrp", next(iter(groups))) not in groups:
            bad.append(op["name"] + ": group and event do not fit")
    nested = {a["nested-attributes"] for s in sets.values()
              for a in s["attributes"] if a.get("type") == "nest"}
    bad += ["%s/%s: no operation has it" % (s["name"], a["name"])
            for s in sets.values() if s["name"] not in nested
            for a in s["attributes"] if a["type"] not in ("unused", "pad")
            and (s["name"], a["name"]) not in used]
    return bad


def spec_names(spec):
    """{C name: value} of all that the specification numbers"""
    out = {}
    for d in spec["definitions"]:
        if d["type"] == "const":
            out[c_name("rgate-", d["name"])] = d["value"]
            continue
        start = d.get("value-start", 0)
        for e, v in numbered(d["entries"], start):
            out[c_name(d["name-prefix"], e["name"])] = \
                1 << v if d["type"] == "flags" else v
    for s in spec["attribute-sets"]:
        if "subset-of" in s:
            continue
        for a, v in numbered(s["attributes"], 1):
            out[c_name(s["name-prefix"], a["name"])] = v
        out[c_name(s["attr-max-name"])] = v
        out[c_name(s["attr-cnt-name"])] = v + 1
    for op, v in numbered(spec["operations"]["list"], 1):
        out[c_name(spec["operations"]["name-prefix"], op["name"])] = v
    out[c_name(spec["cmd-max-name"])] = v
    out[c_name(spec["cmd-cnt-name"])] = v + 1
    out[c_name(spec["c-version-name"])] = spec["version"]
    # How many an enum from 0 on has, no specification tells.
    for d in spec["definitions"]:
        if d["type"] == "enum" and not d.get("value-start"):
            out[c_name(d["name-prefix"], "count")] = len(d["entries"])
    return out


def header_names(names_elsewhere):
    """The same of netlink.h, and of those names that ring.h defines"""
    path = os.path.join(TOP, "uapi", "ringgate", "netlink.h")
    text = re.sub(r"/\*.*?\*/", "", open(path, encoding="utf-8").read(), flags=re.S)
    names = set(re.findall(r"^#define (RGATE_\w+)[ \t]", text, re.M))
    for body in re.findall(r"^enum \w+ \{(.*?)^\};", text, re.S | re.M):
        names |= set(re.findall(r"\b(_*RGATE_\w+)", body))
    strings = {n: m for n, m in re.findall(r'^#define (RGATE_\w+)\s+"(.*)"', text,
                                           re.M)}
    ring = open(os.path.join(TOP, "uapi", "ringgate", "ring.h"),
                encoding="utf-8").read()
    names |= {n for n in names_elsewhere if re.search(r"\b%s\b" % n, ring)}
    # Enumerators and flags of ring.h that the specification should have
    for prefix in ("RGATE_POLICY_", "RGATE_CLOCK_"):
        names |= set(re.findall(r"\b(%s\w+)\b *(?:=|,)" % prefix, ring))
    names |= set(re.findall(r"^#define (RGATE_RING_\w+)", ring, re.M)) - \
        {"RGATE_RING_FLAGS"}
    numbers = sorted(n for n in names if n not in strings)
    with tempfile.TemporaryDirectory() as tmp:
        src, exe = os.path.join(tmp, "n.c"), os.path.join(tmp, "n")
        with open(src, "w", encoding="utf-8") as f:
            f.write("#include <stdio.h>\n#include <ringgate/ring.h>\n"
                    "#include <ringgate/netlink.h>\nint main(void) {\n")
            for n in numbers:
                f.write('printf("%s %%llu\\n", (unsigned long long)(%s));\n' % (n, n))
            f.write("return 0; }\n")
        subprocess.run([os.environ.get("CC", "gcc"), "-std=gnu11", "-I",
                        os.path.join(TOP, "uapi"), "-o", exe, src], check=True)
        out = subprocess.run([exe], check=True, capture_output=True, text=True)
    return {w[0]: int(w[1]) for w in map(str.split, out.stdout.splitlines())}, strings


def module_ops():
    """{command: (has dump, needs the capability)} of the module"""
    def source(name):
        return open(os.path.join(TOP, "kmod", name), encoding="utf-8").read()

    table = re.search(r"rgate_nl_ops\[\d+\] = \{(.*?)^\};", source("netlink_gen.c"),
                      re.S | re.M).group(1)
    ops = {}
    for entry in re.findall(r"^\t\{(.*?)^\t\}", table, re.S | re.M):
        ops[re.search(r"\.cmd\s*= (\w+)", entry).group(1)] = (
            ".dumpit" in entry, "GENL_UNS_ADMIN_PERM" in entry)
    groups = re.search(r"rgate_genl_groups\[\] = \{(.*?)^\};", source("netlink.c"),
                       re.S | re.M).group(1)
    ops["group"] = "GENL_MCAST_CAP_NET_ADMIN" in groups
    return ops


def spec_ops(spec):
    group = spec["mcast-groups"]["list"][0]
    return {"group": "uns-admin-perm" in group.get("flags", [])} | {c_name(spec["operations"]["name-prefix"], op["name"]):
            ("dump" in op, "uns-admin-perm" in op.get("flags", []))
            for op in spec["operations"]["list"] if "do" in op}


def differences(a, b, who):
    return ["%s: %s %s, %s %s" % (k, who[0], a.get(k), who[1], b.get(k))
            for k in sorted(set(a) | set(b)) if a.get(k) != b.get(k)]


def main():
    path = sys.argv[1] if len(sys.argv) > 1 else os.path.join(
        TOP, "Documentation", "netlink", "specs", "ringgate.yaml")
    with open(path, encoding="utf-8") as f:
        spec = yaml.safe_load(f)
    failed = n = 0

    def ok(bad, name):
        nonlocal failed, n
        n += 1
        failed += bool(bad)
        print("%sok %d - %s" % ("not " if bad else "", n, name))
        for line in bad:
            print("# " + line)
        return not bad

    validator = jsonschema.Draft7Validator(SCHEMA)
    if not ok(["%s: %s" % ("/".join(map(str, e.path)), e.message)
               for e in validator.iter_errors(spec)], "it has the form of a spec"):
        print("1..%d" % n)
        return 1
    ok(rules(spec), "names refer to what is there, and everything is used")
    ours = spec_names(spec)
    theirs, strings = header_names(set(ours))
    ok(["only %d names" % len(theirs)] if len(theirs) < 90 else [],
       "the headers were understood")
    ok(differences(ours, theirs, ("spec", "header")), "names and numbers of the headers")
    ok(differences({c_name(spec["c-family-name"]): spec["name"],
                    c_name(spec["mcast-groups"]["list"][0]["c-define-name"]):
                    spec["mcast-groups"]["list"][0]["name"]}, strings,
                   ("spec", "header")), "names of family and group")
    ok(differences(spec_ops(spec), module_ops(), ("spec", "module")),
       "dumps and permissions of the module's commands")
    print("1..%d" % n)
    return 1 if failed else 0


sys.exit(main())
