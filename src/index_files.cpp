// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "index_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <string>

#include "base/child_process.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "results/reader.hpp"

namespace isoscale {
namespace {

/// What one file says on a line, or why it says nothing.
analysis::IndexAnswer index_file(const std::filesystem::path& file,
                                 const analysis::ReportOptions& options,
                                 analysis::Confidences& confidences) {
  try {
    const results::RunData run = results::read_run(file, results::Depth::summary);
    return analysis::index_run(analysis::summarise(run, file.string(), options, confidences));
  } catch (const base::UsageError& error) {
    return analysis::Unreadable{.file = file.string(), .reason = error.what()};
  }
}

/// Below this many files a process costs more than it saves.
constexpr std::size_t fewest_per_process = 16;
/// More would only wait for the same disks.
constexpr std::size_t most_processes = 8;

}  // namespace

std::vector<analysis::IndexAnswer> index_files(const std::vector<std::filesystem::path>& files,
                                               const analysis::ReportOptions& options) {
  analysis::Confidences confidences;
  std::vector<analysis::IndexAnswer> answers;
  constexpr std::size_t most_said = 1000;
  const std::size_t processes =
      std::min({files.size() / fewest_per_process, base::usable_cores(), most_processes});
  if (processes < 2) {
    for (const auto& file : files) answers.push_back(index_file(file, options, confidences));
    return answers;
  }
  const auto told = base::answer_apart(files.size(), processes, [&](std::size_t at) -> std::string {
    try {
      return analysis::to_wire(index_file(files[at], options, confidences));
    } catch (const std::exception& error) {
      return analysis::to_wire(analysis::Unreadable{
          .file = files[at].string(),
          .reason = fmt::format("{}: cannot be read ({})", files[at].string(), error.what())});
    }
  });
  for (std::size_t at = 0; at < files.size(); ++at) {
    if (told[at].text) {
      answers.push_back(analysis::from_wire(*told[at].text));
      continue;
    }
    answers.push_back(analysis::Unreadable{
        .file = files[at].string(),
        .reason = base::printable(
            fmt::format(
                "{}: reading it ended in {}; it may be damaged: copy it again from where it was "
                "written",
                files[at].string(), told[at].ended),
            most_said)});
  }
  return answers;
}

}  // namespace isoscale
