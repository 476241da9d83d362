// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "tests/fuzz/run_mutants.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <chrono>
#include <exception>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>

#include "analysis/catalog/index.hpp"
#include "analysis/page/page.hpp"
#include "analysis/render/render.hpp"
#include "analysis/report.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "results/hdf5/integrity.hpp"
#include "results/reader/reader.hpp"
#include "results/writer/writer.hpp"
#include "tests/fuzz/mutation.hpp"
#include "tests/unit/bench_samples.hpp"
#include "tests/unit/results_samples.hpp"

namespace isoscale::fuzz {
namespace fs = std::filesystem;
namespace {

std::string content_of(const fs::path& file) {
  std::ifstream in{file, std::ios::binary};
  return {std::istreambuf_iterator<char>{in}, {}};
}

void put_content(const fs::path& file, std::string_view bytes) {
  std::ofstream{file, std::ios::binary | std::ios::trunc} << bytes;
}

void write_run(const fs::path& file, units::Bytes part_limit) {
  results::RunData run = results::samples::header();
  run.preflight = results::samples::preflight();
  results::RunWriter writer{file, run, settings::IfExists::refuse, part_limit};
  constexpr int few_steps = 6;
  writer.commit(results::samples::point(0, few_steps));
  writer.commit(results::samples::skipped_point(1));
  writer.commit(samples::collectives(2));
  writer.commit(samples::gemms(3));
  writer.commit(samples::pairs(4));
  writer.commit(samples::memory(5));
  writer.commit(samples::overlaps(6));
  constexpr int chunked_steps = 2500;  // as many as are stored compressed
  writer.commit(results::samples::point(7, chunked_steps));
  run.ended = "2026-01-02T03:05:00Z";
  run.complete = true;
  run.calibration = results::samples::calibration();
  writer.finish(run);
}

/// 80 KB of HDF5 with a point or two: most of it is structure, which is what damage is to find.
void write_small_run(const fs::path& file) {
  results::RunWriter writer{file, results::samples::header(), settings::IfExists::refuse};
  writer.commit(results::samples::point(0));
  writer.finish(results::samples::header());
}

std::string_view name(DigestFate fate) {
  return fate == DigestFate::left ? "digest left" : "digest removed";
}

/// The outcome without its time.
Outcome try_report(const fs::path& file, Formats formats) {
  try {
    const results::RunData run = results::read_run(file);
    std::vector<analysis::RunReport> reports{analysis::make_report(run, file.string(), {})};
    std::vector<analysis::catalog::IndexRun> rows{analysis::catalog::index_run(reports.front())};
    const analysis::merge::Report report{.runs = reports,
                                         .joined = analysis::merge::join(reports, {}),
                                         .warnings = {},
                                         .index = analysis::catalog::make_index(std::move(rows))};
    std::size_t written = analysis::render::render_text(report).size();
    if (formats == Formats::all) {
      written += analysis::render::render_json(report).size() +
                 analysis::render::render_csv(report).size() +
                 analysis::render::render_markdown(report).size() +
                 analysis::render::render_nccl_tests(report).size() +
                 analysis::page::page_data(report).dump(-1, ' ', true).size();
    }
    return {.kind = Outcome::Kind::reported, .said = fmt::format("{} bytes", written)};
  } catch (const base::UsageError& error) {
    const std::string_view reason = error.what();
    const bool is_line = !reason.empty() && base::is_plain(reason);
    return {.kind = is_line ? Outcome::Kind::refused : Outcome::Kind::wrong,
            .said = std::string{reason}};
  } catch (const std::exception& error) {
    return {.kind = Outcome::Kind::wrong, .said = fmt::format("threw {}", error.what())};
  }
}

}  // namespace

Originals::Originals(const fs::path& folder) {
  write_small_run(folder / "small.h5");
  write_run(folder / "run.h5", results::default_part_limit);
  write_run(folder / "parts.h5", units::Bytes{1});
  for (const char* const file : {"small.h5", "run.h5"}) {
    runs_.push_back({{.name = file, .bytes = content_of(folder / file)}});
  }
  std::vector<Part> in_parts;
  for (const auto& entry : fs::directory_iterator{folder}) {
    const std::string file = entry.path().filename().string();
    if (file.starts_with("parts.")) {
      in_parts.push_back({.name = file, .bytes = content_of(entry.path())});
    }
  }
  runs_.push_back(in_parts);
}

Mutant write_mutant(const Originals& originals, std::uint64_t seed, std::size_t item,
                    const fs::path& folder) {
  Mutator mutator{seed, item};
  const auto& run = originals.runs()[mutator.below(4) < 2 ? 0 : 1 + mutator.below(2)];
  const std::size_t damaged = mutator.below(run.size());
  Mutant mutant{
      .run_file = {}, .description = {}, .digest = static_cast<DigestFate>(mutator.below(2))};
  for (std::size_t i = 0; i < run.size(); ++i) {
    const fs::path file = folder / run[i].name;
    if (run[i].name.find(".part") == std::string::npos) mutant.run_file = file;
    std::string bytes = run[i].bytes;
    if (i != damaged) {
      put_content(file, bytes);
      continue;
    }
    mutator.damage(bytes);
    if (mutant.digest == DigestFate::removed) {
      bytes.erase(0, std::min(bytes.size(), results::digest_block_bytes));
    }
    put_content(file, bytes);
    mutant.description = fmt::format("{}, {}", run[i].name, name(mutant.digest));
  }
  return mutant;
}

namespace {

using Seconds = std::chrono::duration<double>;

/// Processor time of this process, or of those that it has waited for.
Seconds used_by(int whom) {
  rusage used{};
  getrusage(whom, &used);
  const auto seconds = [](const timeval& time) {
    return Seconds{static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec)};
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

Seconds used_so_far() { return used_by(RUSAGE_SELF) + used_by(RUSAGE_CHILDREN); }

}  // namespace

Outcome report_file(const fs::path& file, Formats formats) {
  using Clock = std::chrono::steady_clock;
  // On a busy machine the processor time is a report's own doing, and little else.
  constexpr Seconds most_used{2}, most_passed{60};
  const Clock::time_point begin = Clock::now();
  const Seconds used_before = used_so_far();
  Outcome outcome = try_report(file, formats);
  const Seconds passed = Clock::now() - begin, used = used_so_far() - used_before;
  const bool is_slow = used > most_used || passed > most_passed;
  if (is_slow && outcome.kind != Outcome::Kind::wrong) {
    return {.kind = Outcome::Kind::wrong,
            .said = fmt::format("took {:.1f} s, {:.1f} s of a processor: {}", passed.count(),
                                used.count(), outcome.said)};
  }
  return outcome;
}

}  // namespace isoscale::fuzz
