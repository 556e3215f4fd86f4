package v1alpha1

// CronSchedule is the text of a schedule. The API server refuses what functions/schedule cannot parse, by the rules below, in
// this order:
//
//	rule                      what it refuses
//	a zone                    TZ= and CRON_TZ=
//	@name, @every             unknown names, and a duration that is not of whole seconds
//	the number of fields      other than five or six
//	each field by itself      invalid terms between commas: the regular expression of a term appears twice, T(,T)*
//	two numbers in a term     a backward range a-b, and a step of H(a-b)/n that is too large
//
// A regular expression cannot express the last two rules. Splitting a list does not work either: the API server's estimate of a
// rule's cost assumes unlimited lengths for its elements, which forbids nearly everything. But a duration has a constant cost. So
// the rules turn 22-6 into a duration of 22 s and 6 ms, and H(0-5)/7 into one of 0 h, 5 min and 7 ms, and read its parts.
//
// If the evaluation of a rule fails, as for a duration of ten million years, the API server refuses every write of the object,
// including the reconciler's status writes. Where that can happen, the rule accepts an unchanged value (oldSelf). Elsewhere
// Kubernetes itself skips the rules for unchanged values.
//
// functions/schedule checks the rest: days that no month has, such as 30 February.
//
// +kubebuilder:validation:MaxLength=256
// +kubebuilder:validation:XValidation:rule=`!self.matches(r'^\s*[^\s]*TZ=')`,message="a zone does not belong here; write it into the field timeZone"
// +kubebuilder:validation:XValidation:rule=`!self.matches(r'^\s*@') || self.matches(r'^\s*(@(yearly|annually|monthly|weekly|daily|midnight|hourly)\s*$|@every(\s|$))')`,message="this name is not known; write @yearly, @monthly, @weekly, @daily, @hourly, @every with a duration, or five fields"
// +kubebuilder:validation:XValidation:rule=`oldSelf.hasValue() && oldSelf.value() == self || !self.matches(r'^\s*@every(\s|$)') || self.matches(r'^\s*@every\s+[+]?((\d+[.]?\d*|[.]\d+)(ns|us|µs|μs|ms|s|m|h))+\s*$') && duration(self.find(r'[^\s]+\s*$').trim()) >= duration('1s') && timestamp(0) + duration(self.find(r'[^\s]+\s*$').trim()) == timestamp(duration(self.find(r'[^\s]+\s*$').trim()).getSeconds())`,optionalOldSelf=true,message="@every needs a duration of whole seconds, at least one, such as @every 90s or @every 1h30m"
// +kubebuilder:validation:XValidation:rule=`self.matches(r'^\s*([^\s]*TZ=|@)') || self.matches(r'^\s*[^\s]+(\s+[^\s]+){4,5}\s*$')`,message="a schedule has five fields, for minute, hour, day of month, month and day of week, or six, with seconds before them; write, for example, \"30 2 * * *\""
// +kubebuilder:validation:XValidation:rule=`self.matches(r'^\s*([^\s]*TZ=|@)') || !self.matches(r'^\s*[^\s]+(\s+[^\s]+){4,5}\s*$') || self.matches(r'^\s*([^\s]+\s+){4}[^\s]+\s*$|^\s*(([*?]|0*[0-5]?\d(-0*[0-5]?\d)?)(/0*[1-9]\d{0,17})?|H(/0*([2-9]|[1-5]\d|60))?|H\(0*[0-5]?\d-0*[0-5]?\d\)(/0*([2-9]|[1-5]\d|60))?)(,(([*?]|0*[0-5]?\d(-0*[0-5]?\d)?)(/0*[1-9]\d{0,17})?|H(/0*([2-9]|[1-5]\d|60))?|H\(0*[0-5]?\d-0*[0-5]?\d\)(/0*([2-9]|[1-5]\d|60))?))*(\s+[^\s]+){5}\s*$')`,message="the field second takes 0-59, *, a-b, lists a,b, steps /n, H, H(a-b) and H/n"
// +kubebuilder:validation:XValidation:rule=`self.matches(r'^\s*([^\s]*TZ=|@)') || !self.matches(r'^\s*[^\s]+(\s+[^\s]+){4,5}\s*$') || self.matches(r'^\s*([^\s]+\s+){0,1}(([*?]|0*[0-5]?\d(-0*[0-5]?\d)?)(/0*[1-9]\d{0,17})?|H(/0*([2-9]|[1-5]\d|60))?|H\(0*[0-5]?\d-0*[0-5]?\d\)(/0*([2-9]|[1-5]\d|60))?)(,(([*?]|0*[0-5]?\d(-0*[0-5]?\d)?)(/0*[1-9]\d{0,17})?|H(/0*([2-9]|[1-5]\d|60))?|H\(0*[0-5]?\d-0*[0-5]?\d\)(/0*([2-9]|[1-5]\d|60))?))*(\s+[^\s]+){4}\s*$')`,message="the field minute takes 0-59, *, a-b, lists a,b, steps /n, H, H(a-b) and H/n"
// +kubebuilder:validation:XValidation:rule=`self.matches(r'^\s*([^\s]*TZ=|@)') || !self.matches(r'^\s*[^\s]+(\s+[^\s]+){4,5}\s*$') || self.matches(r'^\s*([^\s]+\s+){1,2}(([*?]|0*(1?\d|2[0-3])(-0*(1?\d|2[0-3]))?)(/0*[1-9]\d{0,17})?|H(/0*([2-9]|1\d|2[0-4]))?|H\(0*(1?\d|2[0-3])-0*(1?\d|2[0-3])\)(/0*([2-9]|1\d|2[0-4]))?)(,(([*?]|0*(1?\d|2[0-3])(-0*(1?\d|2[0-3]))?)(/0*[1-9]\d{0,17})?|H(/0*([2-9]|1\d|2[0-4]))?|H\(0*(1?\d|2[0-3])-0*(1?\d|2[0-3])\)(/0*([2-9]|1\d|2[0-4]))?))*(\s+[^\s]+){3}\s*$')`,message="the field hour takes 0-23, *, a-b, lists a,b, steps /n, H, H(a-b) and H/n"
// +kubebuilder:validation:XValidation:rule=`self.matches(r'^\s*([^\s]*TZ=|@)') || !self.matches(r'^\s*[^\s]+(\s+[^\s]+){4,5}\s*$') || self.matches(r'^\s*([^\s]+\s+){2,3}(([*?]|0*([1-9]|[12]\d|3[01])(-0*([1-9]|[12]\d|3[01]))?)(/0*[1-9]\d{0,17})?|H(/0*([2-9]|1\d|2[0-8]))?|H\(0*([1-9]|[12]\d|3[01])-0*([1-9]|[12]\d|3[01])\)(/0*([2-9]|[12]\d|3[01]))?)(,(([*?]|0*([1-9]|[12]\d|3[01])(-0*([1-9]|[12]\d|3[01]))?)(/0*[1-9]\d{0,17})?|H(/0*([2-9]|1\d|2[0-8]))?|H\(0*([1-9]|[12]\d|3[01])-0*([1-9]|[12]\d|3[01])\)(/0*([2-9]|[12]\d|3[01]))?))*(\s+[^\s]+){2}\s*$')`,message="the field day of month takes 1-31, *, a-b, lists a,b, steps /n, H, H(a-b) and H/n"
// +kubebuilder:validation:XValidation:rule=`self.matches(r'^\s*([^\s]*TZ=|@)') || !self.matches(r'^\s*[^\s]+(\s+[^\s]+){4,5}\s*$') || self.matches(r'^\s*([^\s]+\s+){3,4}((?i:[*?]|(0*([1-9]|1[0-2])|JAN|FEB|MAR|APR|MAY|JUN|JUL|AUG|SEP|OCT|NOV|DEC)(-(0*([1-9]|1[0-2])|JAN|FEB|MAR|APR|MAY|JUN|JUL|AUG|SEP|OCT|NOV|DEC))?)(/0*[1-9]\d{0,17})?|H(/0*([2-9]|1[0-2]))?|H\(0*([1-9]|1[0-2])-0*([1-9]|1[0-2])\)(/0*([2-9]|1[0-2]))?)(,((?i:[*?]|(0*([1-9]|1[0-2])|JAN|FEB|MAR|APR|MAY|JUN|JUL|AUG|SEP|OCT|NOV|DEC)(-(0*([1-9]|1[0-2])|JAN|FEB|MAR|APR|MAY|JUN|JUL|AUG|SEP|OCT|NOV|DEC))?)(/0*[1-9]\d{0,17})?|H(/0*([2-9]|1[0-2]))?|H\(0*([1-9]|1[0-2])-0*([1-9]|1[0-2])\)(/0*([2-9]|1[0-2]))?))*(\s+[^\s]+){1}\s*$')`,message="the field month takes 1-12 or JAN-DEC, *, a-b, lists a,b, steps /n, H, H(a-b) and H/n"
// +kubebuilder:validation:XValidation:rule=`self.matches(r'^\s*([^\s]*TZ=|@)') || !self.matches(r'^\s*[^\s]+(\s+[^\s]+){4,5}\s*$') || self.matches(r'\s((?i:[*?]|(0*[0-6]|SUN|MON|TUE|WED|THU|FRI|SAT)(-(0*[0-6]|SUN|MON|TUE|WED|THU|FRI|SAT))?)(/0*[1-9]\d{0,17})?|H(/0*([2-7]))?|H\(0*[0-6]-0*[0-6]\)(/0*([2-7]))?)(,((?i:[*?]|(0*[0-6]|SUN|MON|TUE|WED|THU|FRI|SAT)(-(0*[0-6]|SUN|MON|TUE|WED|THU|FRI|SAT))?)(/0*[1-9]\d{0,17})?|H(/0*([2-7]))?|H\(0*[0-6]-0*[0-6]\)(/0*([2-7]))?))*\s*$')`,message="the field day of week takes 0-6 or SUN-SAT (0 is Sunday), *, a-b, lists a,b, steps /n, H, H(a-b) and H/n"
// +kubebuilder:validation:XValidation:rule=`(self.upperAscii() + ' ').replace('SUN', '0').replace('MON', '1').replace('TUE', '2').replace('WED', '3').replace('THU', '4').replace('FRI', '5').replace('SAT', '6').replace('JAN', '1').replace('FEB', '2').replace('MAR', '3').replace('APR', '4').replace('MAY', '5').replace('JUN', '6').replace('JUL', '7').replace('AUG', '8').replace('SEP', '9').replace('OCT', '10').replace('NOV', '11').replace('DEC', '12').replace('-', 's').replace(',', 'ms').replace('/', 'ms').replace(')', 'ms').replace(' ', 'ms').replace('\t', 'ms').replace('\n', 'ms').replace('\r', 'ms').findAll(r'\d{1,4}s\d{1,4}ms').all(r, duration(r).getSeconds() * 1001 <= duration(r).getMilliseconds())`,message="a range a-b needs a <= b; write two where it passes the end, such as 22-23,0-6 for 22-6"
// +kubebuilder:validation:XValidation:rule=`(self + ' ').replace('-', 'h').replace(')/', 'm').replace(',', 'ms').replace('/', 'ms').replace(')', 'ms').replace(' ', 'ms').replace('\t', 'ms').replace('\n', 'ms').replace('\r', 'ms').findAll(r'\d{1,4}h\d{1,4}m\d{1,4}ms').all(r, duration(r).getMilliseconds() - duration(r).getMinutes() * 60000 <= duration(r).getMinutes() - duration(r).getHours() * 61 + 1)`,message="the step n of H(a-b)/n is at most the length of its range; write a smaller one"
type CronSchedule = string

// ListedSchedule is one of several schedules. Kubernetes compares the entries of a list with no earlier ones, so the rules of
// CronSchedule do not fit here. These refuse mistakes of form; a number out of range becomes the condition Stalled.
//
// +kubebuilder:validation:MaxLength=100
// +kubebuilder:validation:XValidation:rule=`!self.matches(r'^\s*([^\s]*TZ=|@every)')`,message="a zone belongs into timeZone, and @every has no wall clock, so it stands alone, in schedule; write five fields, such as \"30 2 * * *\""
// +kubebuilder:validation:XValidation:rule=`self.matches(r'^\s*([^\s]*TZ=|@every)') || self.matches(r'^\s*(@(yearly|annually|monthly|weekly|daily|midnight|hourly)|[0-9A-Za-z*?/,()-]+(\s+[0-9A-Za-z*?/,()-]+){4,5})\s*$')`,message="a schedule has five fields, for minute, hour, day of month, month and day of week, or six, with seconds before them; or it is @daily, @hourly, @weekly, @monthly or @yearly; write, for example, \"30 2 * * *\""
type ListedSchedule = string

// Exclusion is a date, a range of dates, or five or six fields of a schedule. The API server refuses most of what functions/schedule
// cannot parse; a field out of range, or a day that its month does not have, becomes the condition Stalled.
//
// +kubebuilder:validation:MaxLength=100
// +kubebuilder:validation:XValidation:rule=`self.matches(r'^\s*[^\s]+(\s+[^\s]+){4,5}\s*$') || self.matches(r'^\s*(19[7-9]\d|[2-9]\d{3})-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])(/(19[7-9]\d|[2-9]\d{3})-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01]))?\s*$')`,message="write a date, such as 2026-12-24, two with a slash between them, the earlier first, or five fields of a schedule, such as \"* 0-6 * * *\""
// +kubebuilder:validation:XValidation:rule=`!self.matches(r'^\s*[^\s]+(\s+[^\s]+){4,5}\s*$') || self.matches(r'^(\s|[0-9A-Za-z*?/,()-])*$')`,message="a field of a schedule takes numbers, names of months and weekdays, *, a-b, lists a,b, steps /n, and H; write, for example, \"* 0-6 * * *\""
type Exclusion = string
