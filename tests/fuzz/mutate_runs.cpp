// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
//
// mutate_runs [--mutants N] [--seed S] [--program ISOSCALE]   damages run files, reports each, and
//                                                             fails where a report does anything
//                                                             but print or refuse
// mutate_runs --seed S --only ITEM --into FOLDER              writes one of the mutants and reports
// it
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "base/forked_work.hpp"
#include "tests/fuzz/fork_pool.hpp"
#include "tests/fuzz/run_mutants.hpp"
#include "tests/unit/results_samples.hpp"

extern char** environ;  // NOLINT: POSIX names it so

namespace isoscale::fuzz {
namespace {

namespace fs = std::filesystem;

struct Task {
  std::size_t mutants = 300;
  std::uint64_t seed = std::random_device{}();
  std::string program;
  std::size_t only = 0;
  std::string into;
};

constexpr long most_kilobytes = 1 << 20;  ///< of memory that a process may ever have held

/// The most that this process and those it has waited for have held, kB.
long most_held() {
  rusage self{}, others{};
  getrusage(RUSAGE_SELF, &self);
  getrusage(RUSAGE_CHILDREN, &others);
  return std::max(self.ru_maxrss, others.ru_maxrss);
}

/// One of a program's own, as empty as it was made.
fs::path empty_folder(const fs::path& parent) {
  const fs::path folder = parent / fmt::format("of-{}", getpid());
  fs::remove_all(folder);
  fs::create_directory(folder);
  return folder;
}

/// The tally counts what became of all mutants so far.
struct Tally {
  std::map<std::string, std::size_t> reported, refused;  ///< by what was damaged
  std::size_t wrong = 0;
  long kilobytes = 0;

  void fail(const Task& task, std::size_t item, const std::string& what) {
    ++wrong;
    fmt::print("WRONG: mutant {}: {}\n  again: mutate_runs --seed {} --only {} --into FOLDER\n",
               item, what, task.seed, item);
    std::fflush(stdout);
  }
};

/// The work of a process on one mutant: a letter, kilobytes, description, what was said.
std::string try_mutant(const Task& task, const Originals& originals, const fs::path& folder,
                       std::size_t item) {
  constexpr std::size_t in_all_formats = 8;  // every so many-th
  const Mutant mutant = write_mutant(originals, task.seed, item, empty_folder(folder));
  const Outcome outcome =
      report_file(mutant.run_file, item % in_all_formats == 0 ? Formats::all : Formats::text);
  constexpr std::array<char, 3> letters{'r', 'n', 'w'};
  return fmt::format("{}{}\n{}\n{}", letters.at(static_cast<std::size_t>(outcome.kind)),
                     most_held(), mutant.description, outcome.said);
}

void count(const Task& task, std::size_t item, const base::Answer& answer, Tally& tally) {
  if (!answer.text) return tally.fail(task, item, "ended in " + answer.ended);
  const std::string& text = *answer.text;
  const std::size_t first = text.find('\n'), second = text.find('\n', first + 1);
  const long kilobytes = std::stol(text.substr(1, first - 1));
  const std::string what = text.substr(first + 1, second - first - 1);
  tally.kilobytes = std::max(tally.kilobytes, kilobytes);
  if (text.front() == 'r') ++tally.reported[what];
  if (text.front() == 'n') ++tally.refused[what];
  if (text.front() == 'w') tally.fail(task, item, what + ": " + text.substr(second + 1));
  if (kilobytes > most_kilobytes) tally.fail(task, item, fmt::format("held {} kB", kilobytes));
}

/// In this program, a crowd of mutants for each process: starting one for each would take longest.
void try_here(const Task& task, const Originals& originals, const fs::path& folder, Tally& tally) {
  constexpr std::size_t crowd = 2000;
  for (std::size_t begin = 0; begin < task.mutants; begin += crowd) {
    const auto answers = answer_apart(
        std::min(crowd, task.mutants - begin), std::max<std::size_t>(base::usable_cores(), 2),
        [&](std::size_t at) { return try_mutant(task, originals, folder, begin + at); });
    for (std::size_t at = 0; at < answers.size(); ++at) {
      count(task, begin + at, answers[at], tally);
    }
    if (task.mutants > crowd) {
      fmt::print("{} mutants, {} wrong\n", begin + answers.size(), tally.wrong);
      std::fflush(stdout);
    }
  }
}

/// Runs `isoscale report FILE`; what is wrong with how that went, or "".
std::string try_program(const std::string& program, const fs::path& file, const fs::path& said) {
  posix_spawn_file_actions_t actions{};
  posix_spawn_file_actions_init(&actions);
  constexpr mode_t own = 0600;
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 2, said.c_str(), O_WRONLY | O_CREAT | O_TRUNC, own);
  std::string path = file.string(), name = program, command = "report";
  std::array<char*, 4> arguments{name.data(), command.data(), path.data(), nullptr};
  pid_t process = -1;
  const int failed =
      posix_spawn(&process, program.c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return "the program cannot be started";
  int status = 0;
  rusage used{};
  wait4(process, &status, 0, &used);
  std::ifstream in{said};
  const std::string text{std::istreambuf_iterator<char>{in}, {}};
  if (used.ru_maxrss > most_kilobytes) return fmt::format("held {} kB", used.ru_maxrss);
  if (!WIFEXITED(status)) return fmt::format("ended in signal {}: {}", WTERMSIG(status), text);
  const int code = WEXITSTATUS(status);
  if (code != 0 && code != 2) return fmt::format("exit code {}: {}", code, text);
  const bool is_line = text.starts_with("isoscale: ") && text.find('\n') == text.size() - 1;
  return code == 0 || is_line ? "" : "is refused in more or less than a line: " + text;
}

int try_all(const Task& task) {
  const bool in_memory = access("/dev/shm", W_OK) == 0;
  const results::samples::Directory directory{in_memory ? "/dev/shm" : fs::temp_directory_path()};
  fmt::print("seed {}\n", task.seed);
  std::fflush(stdout);
  const fs::path whole = directory.path() / "whole";
  fs::create_directory(whole);
  const Originals originals{whole};
  Tally tally;
  try_here(task, originals, directory.path(), tally);
  constexpr std::size_t most_started = 60;
  const std::size_t started = task.program.empty() ? 0 : std::min(task.mutants, most_started);
  for (std::size_t item = 0; item < started; ++item) {
    const Mutant mutant = write_mutant(originals, task.seed, item, empty_folder(directory.path()));
    const std::string wrong = try_program(task.program, mutant.run_file, directory.path() / "said");
    if (!wrong.empty()) tally.fail(task, item, "the program " + wrong);
  }
  for (const auto& [what, times] : tally.refused) fmt::print("{:8} refused   {}\n", times, what);
  for (const auto& [what, times] : tally.reported) fmt::print("{:8} reported  {}\n", times, what);
  fmt::print("{} mutants, {} of them given to the program, {} wrong; at most {} MiB\n",
             task.mutants, started, tally.wrong, tally.kilobytes / 1024);
  return tally.wrong == 0 ? 0 : 1;
}

int try_one(const Task& task) {
  const results::samples::Directory directory;
  const Mutant mutant = write_mutant(Originals{directory.path()}, task.seed, task.only, task.into);
  fmt::print("{}: {}\n", mutant.run_file.string(), mutant.description);
  std::fflush(stdout);
  const Outcome outcome = report_file(mutant.run_file, Formats::all);
  constexpr std::array<const char*, 3> kinds{"reported", "refused", "WRONG"};
  fmt::print("{}: {}\n", kinds.at(static_cast<std::size_t>(outcome.kind)), outcome.said);
  return outcome.kind == Outcome::Kind::wrong ? 1 : 0;
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
