"""JUnit's XML, which most CI services show as tests: a suite a file, a failed test a finding."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from xml.etree import ElementTree

from lightlint.finding import Finding
from lightlint.reports.place import ordered

_NO_XML = re.compile(
    "[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
)  # characters that XML 1.0 has no place for


def render(findings: Sequence[Finding], colour: bool = False) -> str:
    """The findings by file and place. `colour` is taken for the sake of the other reports and changes nothing."""
    number = str(len(findings))
    suites = ElementTree.Element("testsuites", name="lightlint", tests=number, failures=number, errors="0")
    for filename, found in groupby(ordered(findings), key=lambda finding: finding.filename):
        suites.append(_suite(_legal(filename), list(found)))
    ElementTree.indent(suites)
    head = '<?xml version="1.0" encoding="UTF-8"?>'
    return f"{head}\n{ElementTree.tostring(suites, encoding='unicode')}\n"


def _suite(filename: str, findings: Sequence[Finding]) -> ElementTree.Element:
    number = str(len(findings))
    suite = ElementTree.Element("testsuite", name=filename, tests=number, failures=number, errors="0", skipped="0")
    for finding in findings:
        cell = "" if finding.cell is None else f"cell {finding.cell}, "
        place = f"{cell}line {finding.location.row}, column {finding.location.column}"
        case = ElementTree.SubElement(suite, "testcase", name=f"{finding.code} {finding.name}: {place}")
        case.attrib |= {"classname": filename, "file": filename, "line": str(finding.location.row)}
        message = _legal(finding.message)
        failure = ElementTree.SubElement(case, "failure", type=finding.tier.value, message=message)
        failure.text = f"{place}: {finding.code} {message}"
    return suite


def _legal(text: str) -> str:
    return _NO_XML.sub("\ufffd", text)
