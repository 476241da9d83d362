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
#include "analysis/compare/comparison_internals.hpp"
#include "analysis/render/escaped_text_and_tables.hpp"
#include "base/text.hpp"

/// Writes the JUnit XML that continuous integration systems read. Its elements are testsuites,
/// testsuite and testcase. A test case may contain one of the elements failure, error and skipped,
/// and the element system-out. XML 1.0 forbids control characters, even as character references;
/// all text has passed through escape(), which replaced them.
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

/// Collects test cases. Readers distinguish cases by their names, so each name occurs once.
class Cases {
 public:
  /// Adds a case with its `element` ("failure", "error" or "skipped"; "" if it passed), the message
  /// of the element, and the text that the case printed, if any.
  void add(const std::string& curve, const std::string& name, std::string_view element,
           std::string_view message, std::string_view out = "") {
    const std::string full = curve.empty() ? name : curve + ": " + name;
    const int times = ++seen_[full];
    text_ += fmt::format("    <testcase classname=\"{}\" name=\"{}{}\">\n", xml(curve), xml(full),
                         times == 1 ? "" : fmt::format(" ({})", times));
    if (!element.empty()) {
      text_ += fmt::format("      <{} message=\"{}\"/>\n", element, xml(message));
    }
    if (!out.empty()) text_ += fmt::format("      <system-out>{}</system-out>\n", xml(out));
    text_ += "    </testcase>\n";
    ++tests_;
    ++count_[element];
  }
  [[nodiscard]] const std::string& text() const { return text_; }
  /// Returns the attributes of a suite that count its cases.
  [[nodiscard]] std::string counts() {
    return fmt::format("tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\"", tests_,
                       count_["failure"], count_["error"], count_["skipped"]);
  }

 private:
  std::map<std::string, int> seen_;
  std::string text_;
  std::size_t tests_ = 0;
  std::map<std::string_view, std::size_t> count_;  ///< number of cases by element
};

/// Returns the XML element for a verdict: "failure" for a regression, and "" if the case passed. If
/// the gate (the test for a loss of throughput) could not decide, returns "failure" if it is
/// strict, else "skipped".
std::string_view element_of(const Comparison& of, Verdict verdict) {
  const bool untold = verdict == Verdict::one_launch || verdict == Verdict::too_noisy;
  const bool is_strict = of.gate && of.gate->strict;
  if (verdict == Verdict::regression || (untold && is_strict)) return "failure";
  return untold ? "skipped" : "";
}

void add_point(const Comparison& of, const Difference& at, Cases& cases) {
  std::string name = fmt::format("{}, {} against {}", base::counted(at.ranks, "rank"),
                                 of.sides[at.side].name, of.sides.front().name);
  const std::vector<std::string> marks = marks_of(of, at.curve, at.side, at.ranks);
  if (!marks.empty()) name += render::escape(fmt::format(" [UNLIKE {}]", fmt::join(marks, ", ")));
  std::string out;
  for (const std::string& sentence : sentences_of(of, at)) out += sentence + "\n";
  cases.add(curve_title(of, at.curve), name, element_of(of, at.verdict),
            fmt::format("{}: {}", compare::name(at.verdict), throughput_sentence(of, at)), out);
}

/// If there is a gate, adds a test case for each curve or point that the first side has and another
/// side lacks. Such a case counts as undecided, like a point with a single launch.
void add_absent(const Comparison& of, Cases& cases) {
  for (const OnlyOn& at : of.only) {
    if (!of.gate || at.side != 0) continue;
    const std::string where = at.ranks.empty() ? "the curve" : base::counted(at.ranks, "rank");
    const std::string why = at.reason.empty() ? "" : ": " + at.reason;
    cases.add(render::escape_up_to(at.title, 200), where, element_of(of, Verdict::one_launch),
              render::escape_up_to("only in " + of.sides.front().name + why, 500));
  }
}

void add_refusals(const Comparison& of, Cases& cases) {
  for (const Unlike& at : of.unlike) {
    const std::string where = fmt::format(
        "{}{}, {} against {}", at.ranks ? base::counted(*at.ranks, "rank") + ", " : "",
        "alike: " + render::escape_up_to(at.what, 200), at.there.side, of.sides.front().name);
    cases.add(render::escape_up_to(at.title, 200), where, "error", "not alike: " + text_of(at));
  }
}

}  // namespace

std::string render_junit(const Comparison& comparison) {
  Cases cases;
  if (comparison.refused) add_refusals(comparison, cases);
  for (const Difference& at : comparison.differences) add_point(comparison, at, cases);
  add_absent(comparison, cases);
  std::string out;
  for (const std::string& sentence : overall_sentences(comparison)) out += sentence + "\n";
  for (const auto& [key, value] : comparison_facts(comparison)) {
    out += fmt::format("{}: {}\n", key, value);
  }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<testsuites name=\"isoscale compare\" {0}>\n"
      "  <testsuite name=\"isoscale compare\" {0}>\n{1}"
      "    <system-out>{2}</system-out>\n  </testsuite>\n</testsuites>\n",
      cases.counts(), cases.text(), xml(out));
}

}  // namespace isoscale::analysis::compare
