// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include "analysis/compare/compare_render.hpp"
#include "analysis/compare/compare_tables.hpp"
#include "analysis/compare/sentences.hpp"
#include "analysis/render/text_table.hpp"

namespace isoscale::analysis {

std::string render_markdown(const Comparison& of) {
  std::string text = "## Comparison\n";
  if (of.refused) text += "\n**Not compared: the sides measured different things.**\n";
  for (const std::string& sentence : overall_sentences(of)) {
    text += fmt::format("\n**{}**\n", literal(sentence));
  }
  if (of.gate) {
    text += fmt::format("\n**{}**\n", literal(gate_sentence(of)));
    text += markdown_tables({gate_table(of)});
  }
  text += markdown_tables({sides_table(of)});
  if (const TitledTable machines = machines_table(of); !machines.rows.empty()) {
    text += markdown_tables({machines});
  }
  if (const Facts facts = comparison_facts(of); !facts.empty()) {
    text += "\n" + markdown_list(facts);
  }
  for (std::size_t c = 0; c < of.curves.size(); ++c) {
    text += fmt::format("\n### {}\n", literal(curve_title(of, c)));
    text += markdown_tables(curve_tables(of, c)) + "\n" + markdown_list(curve_facts(of, c));
  }
  text += "\n";
  for (const std::string& sentence : comparison_key(of)) text += literal(sentence) + "\n";
  return text;
}

}  // namespace isoscale::analysis
