// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "analysis/compare/compare_render.hpp"
#include "analysis/compare/unlike_settings.hpp"
#include "analysis/render/text.hpp"
#include "base/text.hpp"

/// Writes the JUnit XML that continuous integration systems read: testsuites, testsuite, testcase,
/// and inside a case failure, error or skipped. XML 1.0 forbids control characters, even as
/// character references; all text has passed through escape(), which replaced them.
namespace isoscale::analysis::compare {
namespace {

constexpr std::array<std::pair<char, const char*>, 4> entities{
    {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}}};

std::string xml(std::string_view escaped) {
  std::string result;
  for (const char c : escaped) {
    const auto* const at = std::ranges::find(entities, c, &std::pair<char, const char*>::first);
    result += at == entities.end() ? std::string{c} : at->second;
  }
  return result;
}

struct Count {
  std::size_t tests = 0, failures = 0, errors = 0, skipped = 0;
};

/// Opens test cases. Readers distinguish cases by their names, so each name occurs once.
class Cases {
 public:
  std::string open(const std::string& curve, const std::string& name) {
    const std::string full = curve.empty() ? name : curve + ": " + name;
    const int times = ++seen_[full];
    return fmt::format("    <testcase classname=\"{}\" name=\"{}{}\">\n", xml(curve), xml(full),
                       times == 1 ? "" : fmt::format(" ({})", times));
  }
  Count count{};

 private:
  std::map<std::string, int> seen_;
};

std::string inside(std::string_view element, std::string_view message) {
  return fmt::format("      <{} message=\"{}\"/>\n", element, xml(message));
}

/// Returns the XML element for a verdict: "failure", "skipped", or "" if the point passed.
std::string_view element_of(const Comparison& of, Verdict verdict) {
  const bool strict = of.gate && of.gate->untold == CompareOptions::Untold::fail;
  if (verdict == Verdict::regression) return "failure";
  const bool untold = verdict == Verdict::one_launch || verdict == Verdict::too_noisy;
  if (!untold) return "";
  return strict ? "failure" : "skipped";
}

std::string case_text(const Comparison& of, const Difference& at, Cases& cases) {
  std::string name = fmt::format("{}, {} against {}", base::counted(at.ranks, "rank"),
                                 of.sides[at.side].name, of.sides.front().name);
  const std::vector<std::string> marks = marks_of(of, at.curve, at.side, at.ranks);
  if (!marks.empty()) name += render::escape(fmt::format(" [UNLIKE {}]", fmt::join(marks, ", ")));
  std::string text = cases.open(curve_title(of, at.curve), name);
  ++cases.count.tests;
  const std::string said = throughput_sentence(of, at);
  if (const std::string_view element = element_of(of, at.verdict); !element.empty()) {
    (element == "failure" ? cases.count.failures : cases.count.skipped) += 1;
    text += inside(element, fmt::format("{}: {}", compare::name(at.verdict), said));
  }
  std::string out;
  for (const std::string& sentence : sentences_of(of, at)) out += sentence + "\n";
  return text + fmt::format("      <system-out>{}</system-out>\n    </testcase>\n", xml(out));
}

/// Returns test cases for the points that the first side has and another side lacks; with a gate
/// these are tests that could not be run.
std::string absent_text(const Comparison& of, Cases& cases) {
  if (!of.gate) return "";
  const bool strict = of.gate->untold == CompareOptions::Untold::fail;
  std::string text;
  for (const OnlyOn& at : of.only) {
    if (at.side != 0) continue;
    ++cases.count.tests;
    (strict ? cases.count.failures : cases.count.skipped) += 1;
    const std::string where = at.ranks.empty() ? "the curve" : base::counted(at.ranks, "rank");
    const std::string why = at.reason.empty() ? "" : ": " + at.reason;
    text += cases.open(render::escape_up_to(at.title, 200), where) +
            inside(strict ? "failure" : "skipped",
                   render::escape_up_to("only in " + of.sides.front().name + why, 500)) +
            "    </testcase>\n";
  }
  return text;
}

std::string refusals(const Comparison& of, Cases& cases) {
  std::string text;
  for (const Unlike& at : of.unlike) {
    ++cases.count.tests;
    ++cases.count.errors;
    const std::string where = fmt::format(
        "{}{}, {} against {}", at.ranks ? base::counted(*at.ranks, "rank") + ", " : "",
        "alike: " + render::escape_up_to(at.what, 200), at.there.side, of.sides.front().name);
    text += cases.open(render::escape_up_to(at.title, 200), where) +
            inside("error", "not alike: " + text_of(at)) + "    </testcase>\n";
  }
  return text;
}

}  // namespace

std::string render_junit(const Comparison& of) {
  Cases cases;
  std::string text = of.refused ? refusals(of, cases) : "";
  for (const Difference& at : of.differences) text += case_text(of, at, cases);
  text += absent_text(of, cases);
  const Count& count = cases.count;
  const std::string counts =
      fmt::format("tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\"", count.tests,
                  count.failures, count.errors, count.skipped);
  std::string out;
  for (const std::string& sentence : overall_sentences(of)) out += sentence + "\n";
  for (const auto& [key, value] : comparison_facts(of)) out += fmt::format("{}: {}\n", key, value);
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<testsuites name=\"isoscale compare\" {0}>\n"
      "  <testsuite name=\"isoscale compare\" {0}>\n{1}"
      "    <system-out>{2}</system-out>\n  </testsuite>\n</testsuites>\n",
      counts, text, xml(out));
}

}  // namespace isoscale::analysis::compare
