// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "analysis/catalog/run_index.hpp"
#include "analysis/compare/comparison.hpp"

namespace isoscale::analysis::compare {
namespace {

using Runs = std::span<const RunReport>;

/// The characters that every output shows unchanged.
constexpr std::string_view plain =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 ._-+@";

/// True if the name has 1 to 24 characters, all of which every output shows unchanged.
bool is_handy(const std::string& name) {
  constexpr std::size_t longest = 24;
  return !name.empty() && name.size() <= longest &&
         name.find_first_not_of(plain) == std::string::npos;
}

std::string common_beginning(const std::vector<std::string>& texts) {
  std::string common = texts.front();
  for (const std::string& text : texts) {
    const auto ends = std::ranges::mismatch(common, text);
    common.erase(ends.in1, common.end());
  }
  return common;
}

/// Removes digits and the characters "-_. " from the end of a name: "node-03" becomes "node".
std::string without_number(std::string text) {
  const std::size_t last = text.find_last_not_of("0123456789-_. ");
  return text.substr(0, last == std::string::npos ? 0 : last + 1);
}

std::string of_files(Runs runs) {
  std::vector<std::string> stems;
  for (const RunReport& run : runs)
    stems.push_back(std::filesystem::path{run.file}.stem().string());
  return stems.size() == 1 ? stems.front() : without_number(common_beginning(stems));
}

/// Returns the name of the files' folder, without its path; "" if the names of folders differ.
std::string of_folders(Runs runs) {
  std::set<std::string> folders;
  for (const RunReport& run : runs) {
    folders.insert(std::filesystem::path{run.file}.parent_path().filename().string());
  }
  return folders.size() == 1 ? *folders.begin() : "";
}

std::string hosts_of(const catalog::IndexRun& run) {
  if (run.hosts.size() == 1) return run.hosts.front();
  return run.hosts.empty() ? std::string{} : without_number(common_beginning(run.hosts));
}

/// Returns the text that `text`, a function or a member, gives for all runs; "" if runs differ.
template <auto text>
std::string only(Runs runs) {
  std::set<std::string> all;
  for (const RunReport& run : runs) all.insert(std::invoke(text, catalog::index_run(run)));
  return all.size() == 1 ? *all.begin() : "";
}

}  // namespace

std::vector<std::string> default_names(const std::vector<Runs>& sides) {
  using catalog::IndexRun;
  for (const auto name_of :
       {of_files, of_folders, only<&IndexRun::gpu>, only<&IndexRun::cpu>, only<hosts_of>}) {
    std::vector<std::string> names;
    for (const Runs& runs : sides) names.push_back(name_of(runs));
    const std::set<std::string> distinct{names.begin(), names.end()};
    if (distinct.size() == names.size() && std::ranges::all_of(names, is_handy)) return names;
  }
  return {};
}

}  // namespace isoscale::analysis::compare
