// Numbered asm operands of wgmma; the preprocessor cannot compute the numbers. For each number of sum
// registers: the names of these registers, the sums d[i] (`bits` is the register of a sum, `kind` its
// constraint), and the names of the twelve inputs that follow.
#pragma once
#include "cosmati/core/cxx20.h"

#define COSMATI_FOUR(kind, bits, i) \
  kind(d[i] bits), kind(d[i + 1] bits), kind(d[i + 2] bits), kind(d[i + 3] bits)

#define COSMATI_NAMES_2 "%0, %1"
#define COSMATI_NAMES_4 COSMATI_NAMES_2 ", %2, %3"
#define COSMATI_NAMES_8 COSMATI_NAMES_4 ", %4, %5, %6, %7"
#define COSMATI_NAMES_12 COSMATI_NAMES_8 ", %8, %9, %10, %11"
#define COSMATI_NAMES_16 COSMATI_NAMES_12 ", %12, %13, %14, %15"
#define COSMATI_NAMES_20 COSMATI_NAMES_16 ", %16, %17, %18, %19"
#define COSMATI_NAMES_24 COSMATI_NAMES_20 ", %20, %21, %22, %23"
#define COSMATI_NAMES_28 COSMATI_NAMES_24 ", %24, %25, %26, %27"
#define COSMATI_NAMES_32 COSMATI_NAMES_28 ", %28, %29, %30, %31"
#define COSMATI_NAMES_36 COSMATI_NAMES_32 ", %32, %33, %34, %35"
#define COSMATI_NAMES_40 COSMATI_NAMES_36 ", %36, %37, %38, %39"
#define COSMATI_NAMES_44 COSMATI_NAMES_40 ", %40, %41, %42, %43"
#define COSMATI_NAMES_48 COSMATI_NAMES_44 ", %44, %45, %46, %47"
#define COSMATI_NAMES_52 COSMATI_NAMES_48 ", %48, %49, %50, %51"
#define COSMATI_NAMES_56 COSMATI_NAMES_52 ", %52, %53, %54, %55"
#define COSMATI_NAMES_60 COSMATI_NAMES_56 ", %56, %57, %58, %59"
#define COSMATI_NAMES_64 COSMATI_NAMES_60 ", %60, %61, %62, %63"
#define COSMATI_NAMES_68 COSMATI_NAMES_64 ", %64, %65, %66, %67"
#define COSMATI_NAMES_72 COSMATI_NAMES_68 ", %68, %69, %70, %71"
#define COSMATI_NAMES_76 COSMATI_NAMES_72 ", %72, %73, %74, %75"
#define COSMATI_NAMES_80 COSMATI_NAMES_76 ", %76, %77, %78, %79"
#define COSMATI_NAMES_84 COSMATI_NAMES_80 ", %80, %81, %82, %83"
#define COSMATI_NAMES_88 COSMATI_NAMES_84 ", %84, %85, %86, %87"
#define COSMATI_NAMES_92 COSMATI_NAMES_88 ", %88, %89, %90, %91"
#define COSMATI_NAMES_96 COSMATI_NAMES_92 ", %92, %93, %94, %95"
#define COSMATI_NAMES_100 COSMATI_NAMES_96 ", %96, %97, %98, %99"
#define COSMATI_NAMES_104 COSMATI_NAMES_100 ", %100, %101, %102, %103"
#define COSMATI_NAMES_108 COSMATI_NAMES_104 ", %104, %105, %106, %107"
#define COSMATI_NAMES_112 COSMATI_NAMES_108 ", %108, %109, %110, %111"
#define COSMATI_NAMES_116 COSMATI_NAMES_112 ", %112, %113, %114, %115"
#define COSMATI_NAMES_120 COSMATI_NAMES_116 ", %116, %117, %118, %119"
#define COSMATI_NAMES_124 COSMATI_NAMES_120 ", %120, %121, %122, %123"
#define COSMATI_NAMES_128 COSMATI_NAMES_124 ", %124, %125, %126, %127"

#define COSMATI_SUMS_2(kind, bits) kind(d[0] bits), kind(d[1] bits)
#define COSMATI_SUMS_4(kind, bits) COSMATI_FOUR(kind, bits, 0)
#define COSMATI_SUMS_8(kind, bits) COSMATI_SUMS_4(kind, bits), COSMATI_FOUR(kind, bits, 4)
#define COSMATI_SUMS_12(kind, bits) COSMATI_SUMS_8(kind, bits), COSMATI_FOUR(kind, bits, 8)
#define COSMATI_SUMS_16(kind, bits) COSMATI_SUMS_12(kind, bits), COSMATI_FOUR(kind, bits, 12)
#define COSMATI_SUMS_20(kind, bits) COSMATI_SUMS_16(kind, bits), COSMATI_FOUR(kind, bits, 16)
#define COSMATI_SUMS_24(kind, bits) COSMATI_SUMS_20(kind, bits), COSMATI_FOUR(kind, bits, 20)
#define COSMATI_SUMS_28(kind, bits) COSMATI_SUMS_24(kind, bits), COSMATI_FOUR(kind, bits, 24)
#define COSMATI_SUMS_32(kind, bits) COSMATI_SUMS_28(kind, bits), COSMATI_FOUR(kind, bits, 28)
#define COSMATI_SUMS_36(kind, bits) COSMATI_SUMS_32(kind, bits), COSMATI_FOUR(kind, bits, 32)
#define COSMATI_SUMS_40(kind, bits) COSMATI_SUMS_36(kind, bits), COSMATI_FOUR(kind, bits, 36)
#define COSMATI_SUMS_44(kind, bits) COSMATI_SUMS_40(kind, bits), COSMATI_FOUR(kind, bits, 40)
#define COSMATI_SUMS_48(kind, bits) COSMATI_SUMS_44(kind, bits), COSMATI_FOUR(kind, bits, 44)
#define COSMATI_SUMS_52(kind, bits) COSMATI_SUMS_48(kind, bits), COSMATI_FOUR(kind, bits, 48)
#define COSMATI_SUMS_56(kind, bits) COSMATI_SUMS_52(kind, bits), COSMATI_FOUR(kind, bits, 52)
#define COSMATI_SUMS_60(kind, bits) COSMATI_SUMS_56(kind, bits), COSMATI_FOUR(kind, bits, 56)
#define COSMATI_SUMS_64(kind, bits) COSMATI_SUMS_60(kind, bits), COSMATI_FOUR(kind, bits, 60)
#define COSMATI_SUMS_68(kind, bits) COSMATI_SUMS_64(kind, bits), COSMATI_FOUR(kind, bits, 64)
#define COSMATI_SUMS_72(kind, bits) COSMATI_SUMS_68(kind, bits), COSMATI_FOUR(kind, bits, 68)
#define COSMATI_SUMS_76(kind, bits) COSMATI_SUMS_72(kind, bits), COSMATI_FOUR(kind, bits, 72)
#define COSMATI_SUMS_80(kind, bits) COSMATI_SUMS_76(kind, bits), COSMATI_FOUR(kind, bits, 76)
#define COSMATI_SUMS_84(kind, bits) COSMATI_SUMS_80(kind, bits), COSMATI_FOUR(kind, bits, 80)
#define COSMATI_SUMS_88(kind, bits) COSMATI_SUMS_84(kind, bits), COSMATI_FOUR(kind, bits, 84)
#define COSMATI_SUMS_92(kind, bits) COSMATI_SUMS_88(kind, bits), COSMATI_FOUR(kind, bits, 88)
#define COSMATI_SUMS_96(kind, bits) COSMATI_SUMS_92(kind, bits), COSMATI_FOUR(kind, bits, 92)
#define COSMATI_SUMS_100(kind, bits) COSMATI_SUMS_96(kind, bits), COSMATI_FOUR(kind, bits, 96)
#define COSMATI_SUMS_104(kind, bits) COSMATI_SUMS_100(kind, bits), COSMATI_FOUR(kind, bits, 100)
#define COSMATI_SUMS_108(kind, bits) COSMATI_SUMS_104(kind, bits), COSMATI_FOUR(kind, bits, 104)
#define COSMATI_SUMS_112(kind, bits) COSMATI_SUMS_108(kind, bits), COSMATI_FOUR(kind, bits, 108)
#define COSMATI_SUMS_116(kind, bits) COSMATI_SUMS_112(kind, bits), COSMATI_FOUR(kind, bits, 112)
#define COSMATI_SUMS_120(kind, bits) COSMATI_SUMS_116(kind, bits), COSMATI_FOUR(kind, bits, 116)
#define COSMATI_SUMS_124(kind, bits) COSMATI_SUMS_120(kind, bits), COSMATI_FOUR(kind, bits, 120)
#define COSMATI_SUMS_128(kind, bits) COSMATI_SUMS_124(kind, bits), COSMATI_FOUR(kind, bits, 124)

#define COSMATI_INPUTS_2 "%2", "%3", "%4", "%5", "%6", "%7", "%8", "%9", "%10", "%11", "%12", "%13"
#define COSMATI_INPUTS_4 "%4", "%5", "%6", "%7", "%8", "%9", "%10", "%11", "%12", "%13", "%14", "%15"
#define COSMATI_INPUTS_8 "%8", "%9", "%10", "%11", "%12", "%13", "%14", "%15", "%16", "%17", "%18", "%19"
#define COSMATI_INPUTS_12 "%12", "%13", "%14", "%15", "%16", "%17", "%18", "%19", "%20", "%21", "%22", "%23"
#define COSMATI_INPUTS_16 "%16", "%17", "%18", "%19", "%20", "%21", "%22", "%23", "%24", "%25", "%26", "%27"
#define COSMATI_INPUTS_20 "%20", "%21", "%22", "%23", "%24", "%25", "%26", "%27", "%28", "%29", "%30", "%31"
#define COSMATI_INPUTS_24 "%24", "%25", "%26", "%27", "%28", "%29", "%30", "%31", "%32", "%33", "%34", "%35"
#define COSMATI_INPUTS_28 "%28", "%29", "%30", "%31", "%32", "%33", "%34", "%35", "%36", "%37", "%38", "%39"
#define COSMATI_INPUTS_32 "%32", "%33", "%34", "%35", "%36", "%37", "%38", "%39", "%40", "%41", "%42", "%43"
#define COSMATI_INPUTS_36 "%36", "%37", "%38", "%39", "%40", "%41", "%42", "%43", "%44", "%45", "%46", "%47"
#define COSMATI_INPUTS_40 "%40", "%41", "%42", "%43", "%44", "%45", "%46", "%47", "%48", "%49", "%50", "%51"
#define COSMATI_INPUTS_44 "%44", "%45", "%46", "%47", "%48", "%49", "%50", "%51", "%52", "%53", "%54", "%55"
#define COSMATI_INPUTS_48 "%48", "%49", "%50", "%51", "%52", "%53", "%54", "%55", "%56", "%57", "%58", "%59"
#define COSMATI_INPUTS_52 "%52", "%53", "%54", "%55", "%56", "%57", "%58", "%59", "%60", "%61", "%62", "%63"
#define COSMATI_INPUTS_56 "%56", "%57", "%58", "%59", "%60", "%61", "%62", "%63", "%64", "%65", "%66", "%67"
#define COSMATI_INPUTS_60 "%60", "%61", "%62", "%63", "%64", "%65", "%66", "%67", "%68", "%69", "%70", "%71"
#define COSMATI_INPUTS_64 "%64", "%65", "%66", "%67", "%68", "%69", "%70", "%71", "%72", "%73", "%74", "%75"
#define COSMATI_INPUTS_68 "%68", "%69", "%70", "%71", "%72", "%73", "%74", "%75", "%76", "%77", "%78", "%79"
#define COSMATI_INPUTS_72 "%72", "%73", "%74", "%75", "%76", "%77", "%78", "%79", "%80", "%81", "%82", "%83"
#define COSMATI_INPUTS_76 "%76", "%77", "%78", "%79", "%80", "%81", "%82", "%83", "%84", "%85", "%86", "%87"
#define COSMATI_INPUTS_80 "%80", "%81", "%82", "%83", "%84", "%85", "%86", "%87", "%88", "%89", "%90", "%91"
#define COSMATI_INPUTS_84 "%84", "%85", "%86", "%87", "%88", "%89", "%90", "%91", "%92", "%93", "%94", "%95"
#define COSMATI_INPUTS_88 "%88", "%89", "%90", "%91", "%92", "%93", "%94", "%95", "%96", "%97", "%98", "%99"
#define COSMATI_INPUTS_92 \
  "%92", "%93", "%94", "%95", "%96", "%97", "%98", "%99", "%100", "%101", "%102", "%103"
#define COSMATI_INPUTS_96 \
  "%96", "%97", "%98", "%99", "%100", "%101", "%102", "%103", "%104", "%105", "%106", "%107"
#define COSMATI_INPUTS_100 \
  "%100", "%101", "%102", "%103", "%104", "%105", "%106", "%107", "%108", "%109", "%110", "%111"
#define COSMATI_INPUTS_104 \
  "%104", "%105", "%106", "%107", "%108", "%109", "%110", "%111", "%112", "%113", "%114", "%115"
#define COSMATI_INPUTS_108 \
  "%108", "%109", "%110", "%111", "%112", "%113", "%114", "%115", "%116", "%117", "%118", "%119"
#define COSMATI_INPUTS_112 \
  "%112", "%113", "%114", "%115", "%116", "%117", "%118", "%119", "%120", "%121", "%122", "%123"
#define COSMATI_INPUTS_116 \
  "%116", "%117", "%118", "%119", "%120", "%121", "%122", "%123", "%124", "%125", "%126", "%127"
#define COSMATI_INPUTS_120 \
  "%120", "%121", "%122", "%123", "%124", "%125", "%126", "%127", "%128", "%129", "%130", "%131"
#define COSMATI_INPUTS_124 \
  "%124", "%125", "%126", "%127", "%128", "%129", "%130", "%131", "%132", "%133", "%134", "%135"
#define COSMATI_INPUTS_128 \
  "%128", "%129", "%130", "%131", "%132", "%133", "%134", "%135", "%136", "%137", "%138", "%139"
