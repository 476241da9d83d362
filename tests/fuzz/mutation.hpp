// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <random>
#include <string>

/// Damage by chance, the same for the same seed and number on every machine, and the processes that
/// try it.
namespace isoscale::fuzz {

/// Calls `work` in a forked copy of this process, since it may crash or never end. The copy may use
/// 120 s of CPU time, 600 s in all, and 4 GiB of memory. Returns the result of `work`, from 0 to
/// 127, or 128 and the number of the signal that ended the copy.
[[nodiscard]] int status_of(const std::function<int()>& work);

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
