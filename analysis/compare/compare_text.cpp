// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>

#include "analysis/compare/compare_render.hpp"
#include "analysis/compare/compare_tables.hpp"
#include "analysis/compare/sentences.hpp"
#include "analysis/render/text.hpp"

namespace isoscale::analysis {
namespace {

std::string lines(const Facts& facts) {
  constexpr std::size_t key_width = 8;
  std::string text;
  for (const auto& [key, value] : facts) {
    const std::size_t width = std::min(key_width, display_width(key));
    text += fmt::format("  {}{:{}} {}\n", key, "", key_width - width, value);
  }
  return text;
}

std::string titled(const TitledTable& part) {
  return part.title + "\n" + table(part.columns, part.rows);
}

std::string heading(const std::string& title) {
  std::string text = fmt::format("\n{}\n", title);
  for (std::size_t i = std::min<std::size_t>(120, display_width(title)); i > 0; --i) text += "─";
  return text + "\n";
}

}  // namespace

std::string render_text(const Comparison& of) {
  std::string text;
  for (const std::string& sentence : overall_sentences(of)) text += sentence + "\n";
  if (!text.empty()) text += "\n";
  text += titled(sides_table(of));
  if (const TitledTable machines = machines_table(of); !machines.rows.empty()) {
    text += "\n" + titled(machines);
  }
  if (const Facts facts = comparison_facts(of); !facts.empty()) text += "\n" + lines(facts);
  for (std::size_t c = 0; c < of.curves.size(); ++c) {
    text += heading(curve_title(of, c));
    for (const TitledTable& part : curve_tables(of, c)) text += titled(part) + "\n";
    text += lines(curve_facts(of, c));
  }
  text += "\n";
  for (const std::string& sentence : comparison_key(of)) text += sentence + "\n";
  if (of.gate) text += "\n" + titled(gate_table(of)) + "\n" + gate_sentence(of) + "\n";
  return text;
}

}  // namespace isoscale::analysis
