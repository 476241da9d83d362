// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "analysis/advice/findings.hpp"
#include "analysis/render/curve_tables_and_remarks.hpp"
#include "analysis/render/document_and_metrics.hpp"
#include "analysis/render/escaped_text_and_tables.hpp"
#include "analysis/render/machine_and_preflight.hpp"
#include "analysis/render/microbench_tables.hpp"
#include "analysis/render/render.hpp"
#include "analysis/render/summary_findings_and_index.hpp"
#include "analysis/render/table_cells.hpp"
#include "base/error.hpp"
#include "base/text.hpp"

/// Builds the detailed report as one document, from which plain text and Markdown are written.
namespace isoscale::analysis::render {
namespace {

/// The names of sections that --detail accepts, in the order of the enumeration Section.
constexpr std::array<std::string_view, section_count> section_names{
    "curves",   "breakdown", "efficiency", "waterfall",   "pop",     "strategies",
    "phases",   "layers",    "soak",       "nodes",       "devices", "findings",
    "warnings", "preflight", "rows",       "calibration", "legend"};

constexpr std::size_t widest = 120;  ///< width of a detailed report, in characters

/// Returns the section that shows the remarks (lines below a curve) with this key, such as "soak"
/// or "MFU".
Section section_of_remark(std::string_view key) {
  constexpr std::array<std::pair<std::string_view, Section>, 9> known{{
      {"baseline", Section::efficiency},
      {"serial", Section::efficiency},
      {"Amdahl", Section::efficiency},
      {"Gustafson", Section::efficiency},
      {"USL", Section::efficiency},
      {"axes", Section::nodes},
      {"soak", Section::soak},
      {"lost", Section::waterfall},
      {"cause", Section::waterfall},
  }};
  const auto found = std::ranges::find(known, key, &std::pair<std::string_view, Section>::first);
  return found == known.end() ? Section::curves : found->second;
}

DocumentTable breakdown_table(const Curve& curve) {
  const Points traced = traced_points(curve);
  DocumentTable table{.title = "where a step went, mean over ranks" + of_launches(traced)};
  for (const PointReport* const at : traced) {
    std::vector<Cell> cells{{"ranks", Json(at->data->ranks)}};
    add_part_cells(cells,
                   [&](auto part) { return share_text(at->breakdown, part, *at->breakdown.mean); });
    cells.push_back({"tracing", value_json(at->instrumentation_overhead), Unit::share});
    cells.push_back({"where a step went", breakdown_bar(*at->breakdown.mean), Unit::text});
    add_row(table, std::move(cells));
    table.columns.back().keep = Keep::drawing;
  }
  return table;
}

/// Adds a table of speed-up and efficiency with their intervals. It is left out for a curve without
/// a baseline. It is also left out if no speed-up has an interval and all sections are shown, since
/// other tables then have the same values.
void add_efficiency(const Curve& curve, const Sections& sections, Document& document) {
  const bool has_intervals = std::ranges::any_of(curve.points, [](const PointReport& at) {
    return speedup_of(at).value_or(statistics::Located{}).lower.has_value();
  });
  if (!curve.baseline || (!has_intervals && sections.are_all())) return;
  DocumentTable table =
      table_of<PointReport>(point_metrics(), pointers_to(curve.points),
                            "ranks speedup_shown efficiency_shown serial_fraction");
  table.width = Width::of_page;
  table.title = "speed-up and efficiency with 95% intervals";
  document.emplace_back(std::move(table));
}

Facts wanted(Facts facts, const Sections& sections) {
  std::erase_if(facts, [&](const auto& at) { return !sections.has(section_of_remark(at.first)); });
  return facts;
}

/// Puts a heading above `parts`. Returns an empty document if there are no parts.
Document under(std::string title, Document parts) {
  if (!parts.empty()) parts.insert(parts.begin(), Heading{std::move(title), Underline::yes});
  return parts;
}

Document curve_document(const Curve& curve, const Sections& sections,
                        const merge::JoinedCurve* joined, std::span<const RunReport> runs) {
  Document parts;
  if (Facts why = all_skipped(curve); joined == nullptr && !why.empty()) {
    if (sections.has(Section::curves)) append(parts, std::move(why));
    return under(curve.title, std::move(parts));
  }
  if (sections.has(Section::curves)) {
    append(parts, scaling_table(curve, joined));
    if (joined != nullptr) append(parts, times_table(*joined, runs));
  }
  if (sections.has(Section::efficiency)) add_efficiency(curve, sections, parts);
  if (sections.has(Section::breakdown)) append(parts, breakdown_table(curve));
  append(parts, cause_tables(curve, sections));
  append(parts,
         wanted(joined == nullptr ? remarks(curve) : joined_remarks(*joined, runs), sections));
  if (joined == nullptr && sections.has(Section::devices)) {
    append(parts, device_table(curve));
    append(parts, device_remarks(curve));
  }
  return under(curve.title, std::move(parts));
}

Document bench_document(const PointReport& point) {
  Document document{Heading{bench_title(point), Underline::yes}};
  if (std::string why = excuse(point); !why.empty()) document.emplace_back(Paragraph{why});
  append(document, bench_tables(point));
  append(document, bench_remarks(point));
  return document;
}

/// Adds an empty line, and the sentences of a legend as one paragraph each.
void add_legend(Document& document, const std::vector<std::string>& sentences) {
  if (sentences.empty()) return;
  document.emplace_back(Heading{""});
  append_sentences(document, sentences);
}

std::vector<std::string> bench_key() {
  return {
      "Time of one call: median over plays, each as long as its slowest rank, and its 95% "
      "interval; p99 is of single calls.",
      "algbw and busbw: as in nccl-tests; of ceiling: share of the best rate of this run; hidden: "
      "share of the shorter part that the longer one hides.",
      "Slow pairs: bandwidth below the median of the class by 3.5 scaled median deviations and "
      "10%, or by a factor of 4; latency 1.5 times the median. With fewer than 4 pairs: bandwidth "
      "25% below the best, or latency twice the best.",
      "Calibration: error bounds times between the measured sizes; it comes from leaving out each "
      "size in turn."};
}

void add_curve_key(Document& document) {
  add_legend(document,
             {"Step time: median of untraced steps, each as long as its slowest rank, and 95% "
              "interval.",
              "Efficiency: throughput per rank relative to the baseline.",
              "Where a step went: shares of a traced step, mean over ranks, each moment counted "
              "once:"});
  std::vector<Note> parts;
  for (const Category& category : categories()) {
    parts.push_back(
        {fmt::format("{} {}", category.glyph, category.name), std::string{category.meaning}});
  }
  parts.push_back({"  hidden", "communication behind computation and copies (part of these)"});
  parts.push_back(
      {"  moves", "the part of hidden in which data moved; the rest waited for partners"});
  parts.push_back({"  tracing", "how much longer a step is when it is traced"});
  document.emplace_back(std::move(parts));
  append_sentences(
      document,
      {"Lost time: what a cause adds to the step, compared with the baseline; untraced: the "
       "difference between traced and untraced steps. GEMMs: slower per FLOP even without "
       "communication, by shapes, clocks or memory; GEMM overlap: slowed by communication.",
       "Efficiencies: as defined by the POP Centre of Excellence; serialisation comes from a "
       "replay with communication that takes no time."});
}

Facts warnings(const std::vector<std::string>& sentences) {
  Facts facts;
  for (const std::string& sentence : sentences) facts.emplace_back("WARNING", escape(sentence));
  return facts;
}

/// Returns the headline, the tables and the warnings of an index.
Document index_document(const catalog::Index& index, Numbered numbered) {
  Document document{Heading{index_headline(index, numbered)}};
  for (const catalog::IndexMachine& machine : index.machines) {
    append(document, index_tables(index, machine, numbered));
  }
  append(document, index_warnings(index));
  return document;
}

Document index_report(const IndexReport& report) {
  Document document = index_document(report.index, Numbered::no);
  append(document, warnings(report.warnings));
  add_legend(document, index_key());
  if (!report.why.empty()) document.emplace_back(Paragraph{report.why});
  return document;
}

/// Describes each of several launches in an index, then the curves joined over them.
Document joined_document(const merge::Report& report, const Sections& sections) {
  Document document = index_document(report.index, Numbered::as_launches);
  if (sections.has(Section::warnings)) append(document, warnings(report.warnings));
  if (sections.has(Section::findings)) {
    append(document, findings_document(advice::findings_of(report), advice::left_out_of(report)));
  }
  for (const merge::JoinedCurve& joined : report.joined.curves) {
    append(document, curve_document(joined.curve, sections, &joined, report.runs));
  }
  if (report.joined.curves.empty()) document.emplace_back(Heading{"No curve was measured."});
  for (const RunReport& run : report.runs) {
    document.emplace_back(
        Heading{fmt::format("launch {}: {}", &run - report.runs.data() + 1, headline(run))});
    append(document, header(run, sections));
  }
  document.emplace_back(
      Heading{"Curves, micro-benchmarks and calibration of one launch: isoscale report FILE "
              "--detail"});
  if (!sections.has(Section::legend)) return document;
  add_legend(document, joined_key());
  add_legend(document, index_key());
  if (!report.joined.curves.empty()) add_curve_key(document);
  append(document, summary_legend(report.runs.front()));
  return document;
}

void add_tables(Document& document, std::string title, std::vector<DocumentTable> tables) {
  Document parts;
  append(parts, std::move(tables));
  append(document, under(std::move(title), std::move(parts)));
}

void add_legends(const RunReport& run, Document& document) {
  if (!run.curves.empty()) add_curve_key(document);
  add_legend(document, serve_key(run));
  if (!inference_tables(run).empty()) {
    add_legend(document,
               {"TTFT: time to the first tokens of all samples of a batch; TPOT: time per output "
                "token, in the middle of the output; tokens/s: of decode, over all replicas; "
                "frontier: nothing is better in TPOT or tokens/s/rank and as good in the other."});
  }
  if (!run.benches.empty() || !calibration_tables(run).empty()) add_legend(document, bench_key());
  append(document, summary_legend(run));
}

Document run_document(const RunReport& run, const merge::Report& whole, const Sections& sections) {
  Document document{Heading{headline(run)}};
  Facts facts = header(run, sections);
  if (sections.has(Section::warnings)) {
    append(facts, warnings(whole.warnings));
    append(facts, index_warnings(whole.index));
  }
  append(document, std::move(facts));
  if (sections.has(Section::findings)) {
    append(document, findings_document(advice::findings_of(run), advice::left_out_of(run)));
  }
  if (run.curves.empty() && run.benches.empty()) {
    document.emplace_back(Heading{"No point was measured."});
  }
  for (const Curve& curve : run.curves) {
    append(document, curve_document(curve, sections, nullptr, {}));
  }
  if (sections.has(Section::rows)) {
    for (const PointReport& point : run.benches) append(document, bench_document(point));
    add_tables(document, "inference", inference_tables(run));
  }
  if (sections.has(Section::calibration)) {
    add_tables(document, "calibration", calibration_tables(run));
  }
  if (sections.has(Section::legend)) add_legends(run, document);
  return document;
}

Document detailed(const merge::Report& report, const Sections& sections) {
  if (report.runs.size() > 1) return joined_document(report, sections);
  return report.runs.empty() ? Document{} : run_document(report.runs.front(), report, sections);
}

}  // namespace

std::string render_index_text(const IndexReport& report) {
  return to_text(index_report(report), widest);
}

std::string render_index_markdown(const IndexReport& report) {
  return to_markdown(index_report(report));
}

Sections Sections::parse(std::string_view names) {
  Sections wanted;
  if (names == "all") return wanted;
  wanted.wanted_.reset();
  for (const std::string_view name : base::split(names, ',')) {
    const auto* const known = std::ranges::find(section_names, name);
    if (known == section_names.end()) {
      throw base::UsageError(fmt::format(
          "--detail has no section {}{}; the sections are {}, or all", base::quoted(name),
          base::did_you_mean(name, section_names), fmt::join(section_names, ", ")));
    }
    wanted.wanted_.set(static_cast<std::size_t>(known - section_names.begin()));
  }
  return wanted;
}

std::string render_sections(const merge::Report& report, const Sections& sections) {
  return to_text(detailed(report, sections), widest);
}

std::string render_summary(const merge::Report& report, std::size_t columns) {
  return to_text(summary(report), columns);
}

std::string render_text(const merge::Report& report) { return render_sections(report, {}); }

std::string render_markdown(const merge::Report& report) {
  // The first heading is moved to the front, where it becomes the title; the line about the
  // machine, which preceded it, then follows.
  Document document = answer(report);
  const auto title = std::ranges::find_if(
      document, [](const Block& at) { return std::holds_alternative<Heading>(at); });
  if (title != document.end()) std::rotate(document.begin(), title, title + 1);
  return to_markdown(document) + to_markdown(detailed(report, {}));
}

}  // namespace isoscale::analysis::render
