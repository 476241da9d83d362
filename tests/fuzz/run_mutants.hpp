// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

/// Damaged run files, and what a report makes of one.
namespace isoscale::fuzz {

/// Whole run files in a folder of their own, to be damaged: `run.h5`, whose points are in it, and
/// `parts.h5` with a part beside it.
class Originals {
 public:
  explicit Originals(const std::filesystem::path& folder);

  struct Part {
    std::string name;   ///< of the file
    std::string bytes;  ///< all of it
  };
  /// A run file and its parts, the file that is damaged first.
  [[nodiscard]] const std::vector<std::vector<Part>>& runs() const { return runs_; }

 private:
  std::vector<std::vector<Part>> runs_;
};

/// The digest of a damaged file is left, which makes it wrong, or removed.
enum class DigestFate : std::uint8_t { left, removed };

struct Mutant {
  std::filesystem::path run_file;  ///< what a report is given
  std::string description;         ///< for people
  DigestFate digest = DigestFate::left;
};

/// Writes the mutant of this seed and number into an empty folder.
[[nodiscard]] Mutant write_mutant(const Originals& originals, std::uint64_t seed, std::size_t item,
                                  const std::filesystem::path& folder);

/// A report of the file comes to one of these outcomes.
struct Outcome {
  enum class Kind : std::uint8_t { reported, refused, wrong };
  Kind kind = Kind::wrong;
  std::string said;  ///< why refused, or what is wrong with how it went
};
enum class Formats : std::uint8_t { text, all };

/// Reads the file and reports it as `isoscale report` does. Wrong is every exception but a refusal
/// (exit code 2), a reason of more than a line, and more than 2 s of a processor.
[[nodiscard]] Outcome report_file(const std::filesystem::path& file, Formats formats);

}  // namespace isoscale::fuzz
