// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <filesystem>
#include <random>

#include "base/work_in_child_process.hpp"

/// Damage by chance, the same for the same seed and number on every machine, and what the processes
/// may use that try it.
namespace isoscale::fuzz {

/// For forked copies of a test, any of which damage may end: enough, however busy the machine is.
inline constexpr base::Limits limits{.memory = std::uint64_t{4} << 30U,
                                     .cpu_time = std::chrono::seconds{120},
                                     .wall_time = std::chrono::seconds{600}};

[[nodiscard]] std::string content_of(const std::filesystem::path& file);

class Mutator {
 public:
  /// Makes the mutator of the mutant number `item` of all that the seed gives.
  Mutator(std::uint64_t seed, std::uint64_t item);

  /// At most `end`, each as likely: the distributions of the standard library differ by library.
  [[nodiscard]] std::size_t below(std::size_t end);
  /// A number from 0 up whose size in bits is as likely to be small as large.
  [[nodiscard]] std::uint64_t number();

  /// One to four of: bits flipped, a byte replaced, a range overwritten (by zeros, ones, chance, or
  /// what stands elsewhere), a number put in, a piece left out, doubled or put in, the end cut off.
  void damage(std::string& bytes);

 private:
  void damage_once(std::string& bytes);
  void overwrite(std::string& bytes, std::size_t at, std::size_t size);
  void put_number(std::string& bytes, std::size_t at);

  std::mt19937_64 random_;
};

}  // namespace isoscale::fuzz
