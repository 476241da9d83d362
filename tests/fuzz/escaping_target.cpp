// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
//
// Texts of a file on their way into the page and into reports.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "analysis/page/page.hpp"
#include "analysis/render/escaped_text_and_tables.hpp"
#include "base/text.hpp"
#include "tests/fuzz/target.hpp"

namespace {

using isoscale::fuzz::must;
namespace analysis = isoscale::analysis;

void try_page(const std::string& text) {
  const std::string inert = analysis::page::inert({{text, text}, {"list", {text, 1}}});
  must(inert.find('<') == std::string::npos, "the page's data begin no tag");
  must(std::ranges::all_of(inert, [](char c) { return c >= ' ' && c <= '~'; }),
       "the page's data are plain ASCII");
  const auto read = nlohmann::ordered_json::parse(inert);
  must(read.size() == (text == "list" ? 1U : 2U), "the page's data are what they were");
}

/// Returns the value that a spreadsheet takes a cell of CSV for.
std::string value_of(std::string_view cell) {
  if (!cell.starts_with('"')) return std::string{cell};
  must(cell.size() > 1 && cell.ends_with('"'), "a cell's quotes are closed");
  std::string value;
  for (std::size_t i = 1; i + 1 < cell.size(); ++i) {
    if (cell[i] == '"')
      must(++i + 1 < cell.size() && cell[i] == '"', "a cell's quotes are doubled");
    value += cell[i];
  }
  return value;
}

void try_reports(std::string_view text) {
  const std::string shown = analysis::render::escape(text);
  must(isoscale::base::is_plain(shown), "a terminal shows a text and does nothing");
  must(shown.size() <= 8 * analysis::render::most_shown + 100, "long texts are cut");
  must(isoscale::base::is_plain(isoscale::base::printable(text)), "so does an error");
  const std::string cell = analysis::render::text_cell(text);
  const std::string value = value_of(cell);
  must(value.empty() || std::string_view{"=+-@\t\r"}.find(value[0]) == std::string_view::npos,
       "no cell is a formula");
  must(isoscale::base::is_plain(cell), "a cell is plain text");
  const std::string markdown = analysis::render::literal(shown);
  for (const std::string_view bare : {"<", "|", "`"}) {
    for (std::size_t at = markdown.find(bare); at != std::string::npos;
         at = markdown.find(bare, at + 1)) {
      must(at > 0 && markdown[at - 1] == '\\', "markdown shows marks as they are");
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {  // NOLINT
  const std::string text{reinterpret_cast<const char*>(data), size};                 // NOLINT
  try_page(text);
  try_reports(text);
  return 0;
}
