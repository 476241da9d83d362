#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""Proves that check_layering.py passes a sound tree and fails on every kind of breach."""
import tempfile
import unittest
from pathlib import Path

import check_layering

CPP_LICENCE = "".join(f"// {line}\n" for line in check_layering.LICENCE)
HASH_LICENCE = "".join(f"# {line}\n" for line in check_layering.LICENCE)
BODY = "int x;\n" * 700  # long enough for one conditional


def included(*names):
    """A source with these includes."""
    return CPP_LICENCE + "".join(f"#include {name}\n" for name in names)


class LayeringTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        self.write("CMakeLists.txt", HASH_LICENCE)
        for name in ("src/units/units.hpp", "src/base/base.hpp", "src/mesh/mesh.hpp",
                     "src/comm/comm.hpp", "src/executor/executor.hpp", "src/runner/runner.hpp",
                     "workloads/api/model.hpp", "results/records/run_data.hpp",
                     "results/file.hpp", "analysis/fit.hpp"):
            self.write(name, CPP_LICENCE + "#pragma once\n" + BODY)
        self.source("src/mesh/mesh.cpp", '"mesh/mesh.hpp"', "<vector>", "<fmt/format.h>",
                    '"base/base.hpp"', '"units/units.hpp"')
        self.source("src/main.cpp", '"runner/runner.hpp"', '"analysis/fit.hpp"')
        self.source("src/runner/loop.cpp", '"comm/comm.hpp"', '"results/file.hpp"')
        self.source("src/executor/host/play.cpp", "<mpi.h>", "<cblas.h>", '"comm/comm.hpp"')

    def write(self, name, text):
        path = self.root / name
        if path.suffix == ".hpp":  # in the namespace of its folder
            parts = [part for part in Path(name).parent.parts if part not in ("src", "api")]
            text += f"namespace isoscale::{'::'.join(parts)} {{\n}}\n"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def source(self, name, *includes):
        self.write(name, included(*includes))

    def breaches(self):
        return check_layering.check(self.root)[0]

    def assert_one_breach(self, *parts):
        breaches = self.breaches()
        self.assertEqual(len(breaches), 1, breaches)
        for part in parts:
            self.assertIn(part, breaches[0])

    def assert_breach_of(self, name, text, *parts):
        """This one file, which is then as it was, has the only breach."""
        path = self.root / name
        before = path.read_text(encoding="utf-8") if path.exists() else None
        with self.subTest(name, parts=parts):
            self.write(name, text)
            self.assert_one_breach(*parts)
        path.unlink()
        if before is not None:
            path.write_text(before, encoding="utf-8")

    def test_an_include_that_may_not_be_fails(self):
        measuring = ("comm/comm.hpp", "executor/executor.hpp", "runner/runner.hpp")
        for name, includes, *parts in (
                ("src/units/bad.cpp", ["<vector>", '"mesh/mesh.hpp"'], "src/units/bad.cpp:4:",
                 "units must not include", "mesh"),
                ("src/executor/bad.cpp", ['"results/file.hpp"'], "executor must not include",
                 "results/file.hpp"),
                ("results/records/bad.cpp", ['"results/file.hpp"'], "records must not include",
                 "results/file.hpp"),
                *((f"{folder}/bad.cpp", [f'"{header}"'], f"{folder} must not include", header)
                  for folder in ("analysis", "results") for header in measuring),
                *((f"{folder}/bad.cpp", [f"<{header}>"], f"{folder}/bad.cpp:3:",
                   f"<{header}> belongs only in")
                  for header, folder in (
                      ("mpi.h", "src/executor"), ("mpi.h", "src/base"), ("hdf5.h", "analysis"),
                      ("hdf5.h", "results/records"),
                      ("hwloc.h", "src/comm"), ("cublasLt.h", "src/executor/host"),
                      ("nccl.h", "src/comm"), ("cuda_runtime.h", "src/machine"),
                      ("CLI/CLI.hpp", "src/runner"), ("cblas.h", "src/program"),
                      ("nlohmann/json.hpp", "src/program"),
                      ("mpi.h", "src/communal"))),  # not taken for src/comm
                ("src/base/bad.cpp", ["<boost/optional.hpp>"],
                 "<boost/optional.hpp> is an unknown external"),
                ("src/base/bad.cpp", ['"mesh/none.hpp"'], '"mesh/none.hpp" is no file'),
                ("src/base/bad.cpp", ['"mesh.hpp"'], '"mesh.hpp" is no file'),
                ("src/extra/bad.cpp", ['"base/base.hpp"'], "'extra' has no place"),
                ("src/mesh/mesh.cpp", ["<vector>", '"mesh/mesh.hpp"'],
                 'its own header "mesh/mesh.hpp"')):
            self.assert_breach_of(name, included(*includes), *parts)

    def test_a_file_without_what_it_must_have_fails(self):
        self.assert_breach_of("src/mesh/bare.hpp", CPP_LICENCE, "src/mesh/bare.hpp", "#pragma once")
        for name in ("src/base/a.cpp", "tests/unit/a.cpp", "workloads/models/a.toml",
                     "launch/a.sh", "results/CMakeLists.txt", "src/cmake/a.cmake"):
            self.assert_breach_of(name, "\n", f"{name}:1:", "the two comment lines")

    def test_a_sound_tree_passes(self):
        self.assertEqual(self.breaches(), [])
        self.assertEqual(check_layering.main([str(self.root)]), 0)

    def test_the_exit_code_tells_breaches_and_an_empty_place(self):
        self.source("src/units/bad.cpp", '"mesh/mesh.hpp"')
        self.assertEqual(check_layering.main([str(self.root)]), 1)
        for arguments in ([str(self.root / "nowhere")], []):
            self.assertEqual(check_layering.main(arguments), 2)

    def test_what_may_be_passes(self):
        for name, text in (
                ("src/preflight/good.cpp", included('"results/records/run_data.hpp"')),
                ("launch/good.sh", "#!/usr/bin/env bash\n" + HASH_LICENCE),
                ("src/base/good.cpp",
                 CPP_LICENCE + '/*\n#include <mpi.h>\n*/\n// #include "x"\n')):
            self.write(name, text)
            self.assertEqual(self.breaches(), [], name)

    def test_a_circle_of_folders_fails(self):
        self.source("src/runner/plan/plan.cpp", '"runner/runner.hpp"')
        self.assertEqual(self.breaches(), [])
        self.write("src/runner/plan/step.hpp", CPP_LICENCE + "#pragma once\n")
        self.source("src/runner/again.cpp", '"runner/plan/step.hpp"')
        self.assert_one_breach("src/runner, src/runner/plan:", "in a circle")

    def component(self, folder, body):
        self.write(f"{folder}/CMakeLists.txt", HASH_LICENCE + f"isoscale_component({body})\n")

    def all_components(self):
        """Targets for all folders of the tree; each reaches those that stand left of it."""
        self.component("src/units", "units  # a comment (with this)\n  SOURCES a.cpp")
        self.component("src/base", "base SOURCES a.cpp DEPENDS units")
        self.component("src/mesh", "mesh SOURCES mesh.cpp DEPENDS base EXTERNAL fmt::fmt")
        self.component("workloads", "workloads_api SOURCES api/a.cpp ${made} DEPENDS mesh")
        self.component("src/comm", "comm\n  SOURCES a.cpp\n  DEPENDS workloads_api")
        self.component("src/executor", "executor SOURCES a.cpp DEPENDS comm)\n"
                       "isoscale_component(executor_host SOURCES host/play.cpp DEPENDS executor")
        self.component("results/records", "results_records SOURCES a.cpp DEPENDS mesh")
        self.component("results", "results SOURCES a.cpp DEPENDS comm")
        self.component("analysis", "analysis SOURCES a.cpp DEPENDS results")
        self.component("src/runner", "runner SOURCES loop.cpp DEPENDS executor_host results")

    def test_a_folder_includes_what_its_target_reaches(self):
        self.all_components()
        self.source("src/runner/more.cpp", '"mesh/mesh.hpp"', '"results/file.hpp"')
        self.assertEqual(self.breaches(), [])
        self.component("src/runner", "runner SOURCES loop.cpp DEPENDS executor_host")
        for source, breach in zip(("loop", "more"), self.breaches(), strict=True):
            self.assertIn(f"src/runner/{source}.cpp:4: runner must not include", breach)

    def test_a_folder_without_a_target_fails(self):
        self.all_components()
        self.source("src/runner/extra/more.cpp", '"mesh/mesh.hpp"')
        self.assert_one_breach("src/runner/extra/more.cpp:1:", "no isoscale_component")

    def test_targets_stand_in_no_circle_and_name_each_other(self):
        self.all_components()
        self.component("src/units", "units SOURCES a.cpp DEPENDS nonsense")
        self.assert_one_breach("units DEPENDS on nonsense")
        self.component("src/units", "units SOURCES a.cpp DEPENDS mesh")
        self.assert_one_breach("base, mesh, units: targets that DEPEND")
        self.component("src/units", "units DEPENDS base SOURCES a.cpp")
        self.assertTrue(any("write isoscale_component" in text for text in self.breaches()))

    def test_a_folder_is_one_target(self):
        self.all_components()
        self.assertEqual(self.breaches(), [])
        for body in ("results SOURCES a.cpp more/a.cpp DEPENDS comm",
                     "results SOURCES more/a.cpp DEPENDS comm"):
            self.component("results", body)
            self.assert_one_breach("results/CMakeLists.txt", "is one target")

    def test_a_folder_is_one_namespace(self):
        self.write("src/runner/plan/plan.hpp", CPP_LICENCE + "#pragma once\n")
        self.assertEqual(self.breaches(), [])
        (self.root / "src/runner/plan/plan.hpp").write_text(
            CPP_LICENCE + "#pragma once\nnamespace isoscale::runner {\nstruct Plan {};\n}\n")
        self.assert_one_breach("src/runner/plan/plan.hpp:1:", "namespace isoscale::runner::plan")
        plan = "namespace isoscale::runner::plan {\nint x;\n}\n"
        for other, is_right in (("namespace isoscale::comm {\nclass World;\n}\n", True),
                                ("namespace isoscale::comm {\n\ntemplate <>\nint x<Plan>;\n}\n",
                                 True),
                                ("namespace isoscale::comm {\nint x;\n}\n", False)):
            (self.root / "src/runner/plan/plan.hpp").write_text(
                CPP_LICENCE + "#pragma once\n" + other + plan)
            self.assertEqual(self.breaches() == [], is_right, other)

    def test_documents_and_comments_name_files_that_are_there(self):
        self.write("docs/page.md",
                   "`src/mesh/mesh.cpp` and workloads/api/model.hpp, (results/file.hpp).\n")
        self.assertEqual(self.breaches(), [])
        self.assert_breach_of("docs/page.md", "\n`src/mesh/gone.cpp`\n", "docs/page.md:2:",
                              "no file src/mesh/gone.cpp")
        self.assert_breach_of("src/mesh/mesh.hpp",
                              CPP_LICENCE + "#pragma once\n// as analysis/gone.hpp\n" + BODY,
                              "src/mesh/mesh.hpp:4:", "no file analysis/gone.hpp")

    def test_too_many_conditionals_fail(self):
        lines = len(BODY.splitlines()) * 10
        few = int(1.5 * lines / 1000)
        self.write("src/base/a.cpp", CPP_LICENCE + "#ifdef X\n#endif\n" * few)
        self.assertEqual(self.breaches(), [])
        self.write("src/base/a.cpp", CPP_LICENCE + "# if X\n#endif\n" * (few + 2))
        self.assert_one_breach("preprocessor conditionals")


if __name__ == "__main__":
    unittest.main()
