// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
//
// mutate_runs [--mutants N] [--seed S] [--program ISOSCALE]
//     Half of the mutants are damaged run files, whose digest is wrong; each must be refused. The
//     others have other values in whole HDF5 files with a right digest; each must be reported or
//     refused.
// mutate_runs --seed S --only ITEM --into FOLDER
//     writes one of the mutants and reports it
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/catalog/run_index.hpp"
#include "analysis/page/page.hpp"
#include "analysis/render/render.hpp"
#include "analysis/report.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "results/hdf5/file_digest.hpp"
#include "results/hdf5/hdf5.hpp"
#include "results/reader/reader.hpp"
#include "results/writer/writer.hpp"
#include "tests/fuzz/mutation.hpp"
#include "tests/support/scratch_directory.hpp"
#include "tests/unit/bench_samples.hpp"
#include "tests/unit/results_samples.hpp"

namespace isoscale::fuzz {
namespace {

namespace fs = std::filesystem;

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

/// The bytes of a file that hold the values of a dataset.
struct Values {
  std::size_t begin, size;
};

/// HDF5 calls this function for each object of a file; it appends the values of uncompressed
/// datasets to `values`.
herr_t append_values(hid_t file, const char* name, const H5O_info_t* info, void* values) {
  if (info->type != H5O_TYPE_DATASET) return 0;
  const results::hdf5::DatasetId dataset{H5Dopen2(file, name, H5P_DEFAULT)};
  const haddr_t begin = H5Dget_offset(dataset.get());
  const hsize_t size = H5Dget_storage_size(dataset.get());
  if (begin != HADDR_UNDEF && size > 0) {
    static_cast<std::vector<Values>*>(values)->push_back({.begin = begin, .size = size});
  }
  return 0;
}

std::vector<Values> values_in(const fs::path& path) {
  using results::hdf5::check;
  const results::hdf5::FileId file{check(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT))};
  std::vector<Values> values;
  check(H5Ovisit(file.get(), H5_INDEX_NAME, H5_ITER_INC, append_values, &values));
  return values;
}

/// A file of a run.
struct Part {
  std::string name, bytes;
  std::vector<Values> values;
};
using Originals = std::vector<std::vector<Part>>;

/// Whole run files, made in an empty folder, to be damaged: a small one, one whose points are in
/// it, and one with parts beside it.
Originals originals_in(const fs::path& folder) {
  write_small_run(folder / "small.h5");
  write_run(folder / "run.h5", results::default_part_limit);
  write_run(folder / "parts.h5", units::Bytes{1});
  Originals runs(3);
  for (const auto& entry : fs::directory_iterator{folder}) {
    const std::string file = entry.path().filename().string();
    const std::size_t run = file.starts_with("small") ? 0 : file.starts_with("run") ? 1 : 2;
    runs[run].push_back(
        {.name = file, .bytes = content_of(entry.path()), .values = values_in(entry.path())});
  }
  for (auto& parts : runs) std::ranges::sort(parts, {}, &Part::name);
  return runs;
}

struct Mutant {
  fs::path run_file;        ///< what a report is given
  std::string description;  ///< for people
  bool must_be_refused = false;
};

/// Damages some values of datasets.
void damage_values(Mutator& mutator, Part& part) {
  for (std::size_t times = 1 + mutator.below(4); times > 0; --times) {
    const auto [begin, size] = part.values[mutator.below(part.values.size())];
    std::string values = part.bytes.substr(begin, size);
    mutator.damage(values);
    values.resize(size);
    part.bytes.replace(begin, size, values);
  }
}

/// Writes the mutant of this seed and number into an empty folder.
Mutant write_mutant(const Originals& originals, std::uint64_t seed, std::size_t item,
                    const fs::path& folder) {
  Mutator mutator{seed, item};
  const auto& run = originals[mutator.below(4) < 2 ? 0 : 1 + mutator.below(2)];
  const std::size_t changed = mutator.below(run.size());
  const bool is_damaged = run[changed].values.empty() || mutator.below(2) == 0;
  Mutant mutant{.run_file = {},
                .description = fmt::format("{}, {}", run[changed].name,
                                           is_damaged ? "damaged" : "other values")};
  for (std::size_t i = 0; i < run.size(); ++i) {
    const fs::path file = folder / run[i].name;
    if (run[i].name.find(".part") == std::string::npos) mutant.run_file = file;
    Part part = run[i];
    if (i == changed && is_damaged) mutator.damage(part.bytes);
    if (i == changed && !is_damaged) damage_values(mutator, part);
    std::ofstream{file, std::ios::binary | std::ios::trunc} << part.bytes;
    if (i != changed) continue;
    if (is_damaged) {
      mutant.must_be_refused = part.bytes != run[i].bytes;
    } else {
      results::put_digest(base::Descriptor{open(file.c_str(), O_RDWR)});
    }
  }
  return mutant;
}

/// The result of reporting one file.
struct Outcome {
  std::optional<std::string> refused{};  ///< the reason; absent: the file was reported
  std::string wrong{};                   ///< describes what went wrong; empty if nothing did
};
enum class Formats : std::uint8_t { text, all };

/// Reads the file and reports it as `isoscale report` does. Wrong is every exception but a refusal
/// (exit code 2), and a reason of more than a line.
Outcome try_report(const fs::path& file, Formats formats) {
  try {
    const results::RunData run = results::read_run(file);
    std::vector<analysis::RunReport> reports{analysis::make_report(run, file.string(), {})};
    std::vector<analysis::catalog::IndexRun> rows{analysis::catalog::index_run(reports.front())};
    const analysis::merge::Report report{.runs = reports,
                                         .joined = analysis::merge::join(reports, {}),
                                         .warnings = {},
                                         .index = analysis::catalog::make_index(std::move(rows))};
    (void)analysis::render::render_text(report);
    if (formats == Formats::all) {
      (void)analysis::render::render_json(report);
      (void)analysis::render::render_csv(report);
      (void)analysis::render::render_markdown(report);
      (void)analysis::render::render_nccl_tests(report);
      (void)analysis::page::page_data(report).dump(-1, ' ', true);
    }
    return {};
  } catch (const base::UsageError& error) {
    const std::string reason = error.what();
    return {.refused = reason,
            .wrong = !reason.empty() && base::is_plain(reason) ? "" : "says " + reason};
  } catch (const std::exception& error) {
    return {.wrong = fmt::format("threw {}", error.what())};
  }
}

/// The resources that this process, and those that it has waited for, have used so far.
struct Used {
  double seconds = 0;  ///< of processors
  long kilobytes = 0;  ///< the most that any of them has held
};

Used used_so_far() {
  Used used;
  for (const int whom : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage of{};
    getrusage(whom, &of);
    for (const timeval& time : {of.ru_utime, of.ru_stime}) {
      used.seconds += static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
    }
    used.kilobytes = std::max(used.kilobytes, of.ru_maxrss);
  }
  return used;
}

constexpr long most_kilobytes = 1 << 20;  ///< of memory that a process may ever have held

/// A report that takes more than 2 s of a processor, or too much memory, is wrong as well.
Outcome report_file(const Mutant& mutant, Formats formats) {
  using Clock = std::chrono::steady_clock;
  // On a busy machine the processor time is a report's own doing, and little else.
  constexpr double most_used = 2, most_passed = 60;
  const Clock::time_point begin = Clock::now();
  const Used before = used_so_far();
  Outcome outcome = try_report(mutant.run_file, formats);
  if (mutant.must_be_refused && !outcome.refused) outcome.wrong += " is not refused";
  const double passed = std::chrono::duration<double>(Clock::now() - begin).count();
  const Used after = used_so_far();
  const double used = after.seconds - before.seconds;
  if (used > most_used || passed > most_passed) {
    outcome.wrong += fmt::format(" took {:.1f} s, {:.1f} s of a processor", passed, used);
  }
  if (after.kilobytes > most_kilobytes) {
    outcome.wrong += fmt::format(" held {} kB", after.kilobytes);
  }
  return outcome;
}

struct Task {
  std::size_t mutants = 300;
  std::uint64_t seed = std::random_device{}();
  std::string program;
  std::size_t only = 0;
  std::string into;
};

/// The counts of refused and wrong mutants so far.
struct Tally {
  std::size_t refused = 0, wrong = 0;

  void fail(const Task& task, std::size_t item, const std::string& what) {
    ++wrong;
    fmt::print("WRONG: mutant {}: {}\n  again: mutate_runs --seed {} --only {} --into FOLDER\n",
               item, what, task.seed, item);
    std::fflush(stdout);
  }
};

/// The results of try_mutant(), which status_of() passes on.
constexpr int is_reported = 0, is_refused = 1, is_wrong = 2;

/// Tries one mutant in a process of its own and prints what is wrong with its report.
int try_mutant(const Task& task, const Originals& originals, const fs::path& folder,
               std::size_t item) {
  constexpr std::size_t in_all_formats = 8;  // every so many-th
  const testing_support::ScratchDirectory own{folder};
  const Mutant mutant = write_mutant(originals, task.seed, item, own.path());
  const Outcome outcome =
      report_file(mutant, item % in_all_formats == 0 ? Formats::all : Formats::text);
  if (!outcome.wrong.empty()) {
    fmt::print("{}: {}\n", mutant.description, outcome.wrong);
    return is_wrong;
  }
  return outcome.refused ? is_refused : is_reported;
}

/// Tries each mutant in a forked copy of this program.
void try_here(const Task& task, const Originals& originals, const fs::path& folder, Tally& tally) {
  constexpr std::size_t told_every = 2000;
  for (std::size_t item = 0; item < task.mutants; ++item) {
    const int status = status_of([&] { return try_mutant(task, originals, folder, item); });
    if (status == is_refused) ++tally.refused;
    if (status > is_refused) tally.fail(task, item, fmt::format("status {}", status));
    if ((item + 1) % told_every == 0) {
      fmt::print("{} mutants, {} wrong\n", item + 1, tally.wrong);
      std::fflush(stdout);
    }
  }
}

/// Runs `isoscale report FILE`; what is wrong with how that went, or "".
std::string try_program(const std::string& program, const fs::path& file, const fs::path& said) {
  const pid_t process = fork();
  if (process < 0) return "cannot be started";
  if (process == 0) {
    if (std::freopen("/dev/null", "w", stdout) && std::freopen(said.c_str(), "w", stderr)) {
      execl(program.c_str(), program.c_str(), "report", file.c_str(), nullptr);
    }
    _exit(1);
  }
  int status = 0;
  rusage used{};
  wait4(process, &status, 0, &used);
  const std::string text = content_of(said);
  if (used.ru_maxrss > most_kilobytes) return fmt::format("held {} kB", used.ru_maxrss);
  if (!WIFEXITED(status)) return fmt::format("ended in signal {}: {}", WTERMSIG(status), text);
  const int code = WEXITSTATUS(status);
  if (code != 0 && code != 2) return fmt::format("exit code {}: {}", code, text);
  const bool is_line = text.starts_with("isoscale: ") && text.find('\n') == text.size() - 1;
  return code == 0 || is_line ? "" : "is refused in more or less than a line: " + text;
}

int try_all(const Task& task) {
  const bool in_memory = access("/dev/shm", W_OK) == 0;
  const testing_support::ScratchDirectory directory{in_memory ? "/dev/shm"
                                                              : fs::temp_directory_path()};
  fmt::print("seed {}\n", task.seed);
  std::fflush(stdout);
  const fs::path whole = directory.path() / "whole";
  fs::create_directory(whole);
  const Originals originals = originals_in(whole);
  Tally tally;
  try_here(task, originals, directory.path(), tally);
  constexpr std::size_t most_started = 60;
  const std::size_t started = task.program.empty() ? 0 : std::min(task.mutants, most_started);
  for (std::size_t item = 0; item < started; ++item) {
    const testing_support::ScratchDirectory own{directory.path()};
    const Mutant mutant = write_mutant(originals, task.seed, item, own.path());
    const std::string wrong = try_program(task.program, mutant.run_file, directory.path() / "said");
    if (!wrong.empty()) tally.fail(task, item, "the program " + wrong);
  }
  fmt::print("{} mutants, {} of them refused, {} given to the program, {} wrong\n", task.mutants,
             tally.refused, started, tally.wrong);
  return tally.wrong == 0 ? 0 : 1;
}

int try_one(const Task& task) {
  const testing_support::ScratchDirectory directory;
  const Mutant mutant =
      write_mutant(originals_in(directory.path()), task.seed, task.only, task.into);
  fmt::print("{}: {}\n", mutant.run_file.string(), mutant.description);
  std::fflush(stdout);
  const Outcome outcome = report_file(mutant, Formats::all);
  fmt::print("{}\n", !outcome.wrong.empty() ? "WRONG: " + outcome.wrong
                     : outcome.refused      ? "refused: " + *outcome.refused
                                            : "reported");
  return outcome.wrong.empty() ? 0 : 1;
}

}  // namespace
}  // namespace isoscale::fuzz

int main(int argc, char** argv) {
  isoscale::fuzz::Task task;
  CLI::App app{"Damages run files and reports each."};
  app.add_option("--mutants", task.mutants, "how many");
  app.add_option("--seed", task.seed, "what they depend on; otherwise by chance");
  app.add_option("--program", task.program, "isoscale, to be given some of them as well");
  auto* const into = app.add_option("--into", task.into, "an empty folder");
  app.add_option("--only", task.only, "the number of one mutant")->needs(into);
  CLI11_PARSE(app, argc, argv);
  return task.into.empty() ? isoscale::fuzz::try_all(task) : isoscale::fuzz::try_one(task);
}
