// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>

#include "analysis/compare/compare_render.hpp"
#include "analysis/compare/compare_tables.hpp"
#include "analysis/compare/sentences.hpp"
#include "analysis/render/sentences.hpp"
#include "analysis/render/text_escape.hpp"

/// JUnit's XML as continuous integration reads it: testsuites, testsuite, testcase, with failure,
/// error or skipped inside. XML 1.0 has no control characters at all, not even as references: all
/// text here was made visible by escape().
namespace isoscale::analysis {
namespace {

std::string xml(std::string_view escaped) {
  std::string result;
  for (const char c : escaped) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

struct Count {
  std::size_t tests = 0, failures = 0, errors = 0, skipped = 0;
};

std::string inside(std::string_view element, std::string_view message) {
  return fmt::format("      <{} message=\"{}\"/>\n", element, xml(message));
}

/// What a verdict is to a test: "failure", "skipped" or, passed, "".
std::string_view element_of(const Comparison& of, Verdict verdict) {
  const bool strict = of.gate && of.gate->untold == CompareOptions::Untold::fail;
  if (verdict == Verdict::regression) return "failure";
  const bool untold = verdict == Verdict::one_launch || verdict == Verdict::too_noisy;
  if (!untold) return "";
  return strict ? "failure" : "skipped";
}

std::string case_text(const Comparison& of, const Difference& at, Count& count) {
  std::string name = fmt::format("{}, {} against {}", ranks_text({at.ranks}),
                                 of.sides[at.side].name, of.sides.front().name);
  const std::vector<std::string> marks = marks_of(of, at.curve, at.side, at.ranks);
  if (!marks.empty()) name += escape(fmt::format(" [UNLIKE {}]", fmt::join(marks, ", ")));
  std::string text = fmt::format("    <testcase classname=\"{}\" name=\"{}\">\n",
                                 xml(curve_title(of, at.curve)), xml(name));
  ++count.tests;
  const std::string said = throughput_sentence(of, at);
  if (const std::string_view element = element_of(of, at.verdict); !element.empty()) {
    (element == "failure" ? count.failures : count.skipped) += 1;
    text += inside(element, fmt::format("{}: {}", analysis::name(at.verdict), said));
  }
  std::string out;
  for (const std::string& sentence : sentences_of(of, at)) out += sentence + "\n";
  return text + fmt::format("      <system-out>{}</system-out>\n    </testcase>\n", xml(out));
}

/// What the first side has and another has not: with a gate a test that could not be made.
std::string absent_text(const Comparison& of, Count& count) {
  if (!of.gate) return "";
  const bool strict = of.gate->untold == CompareOptions::Untold::fail;
  std::string text;
  for (const OnlyOn& at : of.only) {
    if (at.side != 0) continue;
    ++count.tests;
    (strict ? count.failures : count.skipped) += 1;
    const std::string where = at.ranks.empty() ? "the curve" : ranks_text(at.ranks);
    const std::string why = at.reason.empty() ? "" : ": " + at.reason;
    text += fmt::format("    <testcase classname=\"{}\" name=\"{}\">\n",
                        xml(escape_up_to(at.title, 200)), xml(where)) +
            inside(strict ? "failure" : "skipped",
                   escape_up_to("only in " + of.sides.front().name + why, 500)) +
            "    </testcase>\n";
  }
  return text;
}

std::string refusals(const Comparison& of, Count& count) {
  std::string text;
  for (const Unlike& at : of.unlike) {
    ++count.tests;
    ++count.errors;
    text +=
        fmt::format("    <testcase classname=\"{}\" name=\"{}\">\n",
                    xml(escape_up_to(at.title, 200)), xml("alike: " + escape_up_to(at.what, 200))) +
        inside("error", "not alike: " + text_of(at)) + "    </testcase>\n";
  }
  return text;
}

}  // namespace

std::string render_junit(const Comparison& of) {
  Count count;
  std::string cases = of.refused ? refusals(of, count) : "";
  for (const Difference& at : of.differences) cases += case_text(of, at, count);
  cases += absent_text(of, count);
  const std::string counts =
      fmt::format("tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\"", count.tests,
                  count.failures, count.errors, count.skipped);
  std::string out;
  for (const auto& [key, value] : comparison_facts(of)) out += fmt::format("{}: {}\n", key, value);
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<testsuites name=\"isoscale compare\" {0}>\n"
      "  <testsuite name=\"isoscale compare\" {0}>\n{1}"
      "    <system-out>{2}</system-out>\n  </testsuite>\n</testsuites>\n",
      counts, cases, xml(out));
}

}  // namespace isoscale::analysis
