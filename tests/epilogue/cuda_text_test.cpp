// The generated source: its text and, if a compiler is available, its values.
#include "cosmati/epilogue/cuda_text.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "cosmati/epilogue/evaluate.h"
#include "cosmati/epilogue/parse.h"
#include "tests/epilogue/random_expression.h"

namespace cosmati::epilogue {
namespace {

TEST(EpilogueCudaText, IsAFunctionBody) {
  EXPECT_EQ(to_cuda(Expression()), "return acc;\n");
  EXPECT_EQ(to_cuda(parse("store(pre, acc + bias[n]); relu(acc + bias[n]) * alpha + 1e22")),
            "Real const v2 = acc + operand[0];\n"
            "Real const v3 = v2 < Real(0) ? Real(0) : v2;\n"
            "Real const v5 = v3 * scalar[0];\n"
            "Real const v7 = v5 + Real(1e+22);\n"
            "store[0] = v2;\n"
            "return v7;\n");
  EXPECT_EQ(to_cuda(parse("16777217 * acc")), "Real const v2 = Real(16777217.0) * acc;\nreturn v2;\n");
}

TEST(EpilogueCudaText, IsShorterForResultsOfSixteenBits) {
  EXPECT_EQ(to_cuda(parse("gelu(acc)"), true), "Real const v1 = coarse_gelu(acc);\nreturn v1;\n");
  EXPECT_EQ(to_cuda(parse("silu(acc)"), true),
            "Real const v1 = coarse_quotient(acc, (Real(1) + exponential(-acc)));\nreturn v1;\n");
  EXPECT_EQ(to_cuda(parse("sqrt(acc)"), true), "Real const v1 = coarse_root(acc);\nreturn v1;\n");
  EXPECT_EQ(to_cuda(parse("normal_cdf(acc)"), true), "Real const v1 = coarse_normal_cdf(acc);\nreturn v1;\n");
  EXPECT_EQ(to_cuda(parse("erf(acc)"), true), to_cuda(parse("erf(acc)")));
}

TEST(EpilogueCudaText, HoldsNoNameOfTheExpression) {
  std::string const text = to_cuda(parse("store(secret, acc); hidden * acc + covert[n]"));
  for (char const* name : {"secret", "hidden", "covert"}) EXPECT_EQ(text.find(name), std::string::npos);
}

constexpr char prelude[] = R"(#include <cmath>
using std::erf, std::erfc, std::exp, std::expm1, std::fabs, std::log, std::pow, std::rint, std::sqrt, std::tanh;
)";

using Compiled = double (*)(double, double, double const*, double const*, double*);

TEST(EpilogueCudaText, CompilesToTheReferencesValues) {
  if (std::system("c++ --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "there is no c++ on the path";
  std::string folder = (std::filesystem::temp_directory_path() / "cosmati_cuda_text_XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);

  RandomExpression random(7);
  std::vector<std::string> texts;
  for (Function const& function : function_table())
    texts.push_back(std::string(function.name) + (arity(function.op) == 1   ? "(acc)"
                                                  : arity(function.op) == 2 ? "(acc, c)"
                                                                            : "(acc, -1, 0.5)"));
  for (int i = 0; i < 100; ++i) texts.push_back(random.text());
  std::vector<Expression> expressions;
  std::ofstream source(folder + "/text.cpp");
  source << prelude;
  for (std::string const& text : texts) {
    std::string const name = "f" + std::to_string(expressions.size());
    expressions.push_back(parse(text));
    source << "template <class Real> static Real " << name
           << "_of(Real acc, Real c, Real const* scalar, Real const* operand, Real* store) {\n"
           << to_cuda(expressions.back()) << "}\n"
           << "template float " << name << "_of(float, float, float const*, float const*, float*);\n"
           << "extern \"C\" double " << name
           << "(double acc, double c, double const* scalar, double const* operand, double* store) { return "
           << name << "_of(acc, c, scalar, operand, store); }\n";
  }
  source.close();
  std::string const command = "c++ -std=c++17 -O0 -ffp-contract=off -fPIC -shared -o '" + folder +
                              "/text.so' '" + folder + "/text.cpp'";
  ASSERT_EQ(std::system(command.c_str()), 0);
  void* const library = dlopen((folder + "/text.so").c_str(), RTLD_NOW);
  ASSERT_NE(library, nullptr) << dlerror();

  for (std::size_t k = 0; k < expressions.size(); ++k) {
    Expression const& e = expressions[k];
    auto const compiled = reinterpret_cast<Compiled>(dlsym(library, ("f" + std::to_string(k)).c_str()));
    ASSERT_NE(compiled, nullptr);
    for (int i = 0; i < 50; ++i) {
      std::vector<double> scalars(e.scalars().size()), operands(e.operands().size());
      for (double& value : scalars) value = random.number(-3, 3);
      for (double& value : operands) value = random.number(-3, 3);
      double const acc = i == 0 ? std::nan("") : random.number(-3, 3), c = random.number(-3, 3);
      std::vector<double> wanted_stores(e.stores().size()), stores(e.stores().size());
      double const wanted = evaluate(e, {acc, c, scalars, operands, wanted_stores});
      double const got = compiled(acc, c, scalars.data(), operands.data(), stores.data());
      auto const same = [](double a, double b) {
        return a == b || (std::isnan(a) && std::isnan(b)) ||
               std::fabs(a - b) <= 1e-10 * std::max(1.0, std::fabs(b));
      };
      EXPECT_TRUE(same(got, wanted)) << texts[k] << "\nwanted " << wanted << ", got " << got;
      for (std::size_t s = 0; s < stores.size(); ++s)
        EXPECT_TRUE(same(stores[s], wanted_stores[s])) << texts[k];
    }
  }
  dlclose(library);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace cosmati::epilogue
